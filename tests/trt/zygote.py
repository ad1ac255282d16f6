"""A process that has imported the fake `tensorrt`, if one is selected, and forks for every script, in milliseconds.

Reads one JSON object per line, {"source", "cwd", "environment", "kept"}, and answers one, {"code", "out", "err"}. What
is "kept" runs in one fork, one script after the other.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO


class Zygote:
    """The parent's end."""

    def __init__(self, environment: dict[str, str], *modules: str) -> None:
        """modules: imported besides, before the first fork."""
        command = [sys.executable, __file__, *modules]
        self.child = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, source: str, cwd: str, environment: dict[str, str], *, kept: bool = False) -> dict[str, Any]:
        """Run a script in a fork; return its exit code and output. kept: in the same one as those before it."""
        assert self.child.stdin is not None and self.child.stdout is not None
        order = {"source": source, "cwd": cwd, "environment": environment, "kept": kept}
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()
        answer: dict[str, Any] = json.loads(self.child.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.close()
        self.child.wait(timeout=60)
        self.child.stdout.close()


def _forked(order: dict[str, Any], out: TextIO, err: TextIO) -> int:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(_here(order, out, err))


def _here(order: dict[str, Any], out: TextIO, err: TextIO) -> int:
    """Run a script in this process; its exit code."""
    code = 0
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.chdir(order["cwd"])
        os.environ.update(order["environment"])
        exec(compile(order["source"], "<scenario>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _answer(order: dict[str, Any], run: Callable[[dict[str, Any], TextIO, TextIO], int]) -> str:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = run(order, out, err)
        out.seek(0)
        err.seek(0)
        return json.dumps({"code": code, "out": out.read(), "err": err.read()}) + "\n"


class _Kept:
    """A fork that runs one script after the other."""

    def __init__(self) -> None:
        (read, self._write), (self._read, write) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(self._write)
            os.close(self._read)
            with open(read) as orders, open(write, "w") as answers:  # noqa: PTH123 (descriptors)
                for line in orders:
                    answers.write(_answer(json.loads(line), _here))
                    answers.flush()
            os._exit(0)
        os.close(read)
        os.close(write)
        self._orders, self._answers = open(self._write, "w"), open(self._read)  # noqa: PTH123, SIM115

    def run(self, order: dict[str, Any]) -> str:
        """The answer; "" where the fork has ended, as some scripts make it."""
        with suppress(BrokenPipeError):
            self._orders.write(json.dumps(order) + "\n")
            self._orders.flush()
        return self._answers.readline()


def serve() -> None:
    """Answer orders until the parent closes the pipe."""
    kept = None
    for line in sys.stdin:
        order, answer = json.loads(line), ""
        if order["kept"]:
            kept = kept or _Kept()
            answer = kept.run(order)
            kept = kept if answer else None
        sys.stdout.write(answer or _answer(order, _forked))
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    from support.huge_pages import collapse, reserve

    gc.set_threshold(10_000, *gc.get_threshold()[1:])  # as the programs set it
    reserve()
    fakes = ["cuda.bindings.runtime", "tensorrt"] if "LAYERWISE_FAKE_TRT" in os.environ else []
    with suppress(ModuleNotFoundError):  # where it is told to be absent
        importlib.import_module("onnxruntime")
    for module in (*fakes, "numpy", "onnx", *sys.argv[1:]):
        importlib.import_module(module)
    if fakes:
        sys.modules["tensorrt"]._forward.real()
    gc.collect()
    gc.freeze()
    collapse()
    serve()
