"""A process that has imported the fake `tensorrt`, if one is selected, and forks for every script, in milliseconds.

Reads one JSON object per line, {"source", "cwd", "environment"}, and answers one, {"code", "out", "err"}.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
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

    def run(self, source: str, cwd: str, environment: dict[str, str]) -> dict[str, Any]:
        """Run a script in a fork; return its exit code and output."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(json.dumps({"source": source, "cwd": cwd, "environment": environment}) + "\n")
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
    os._exit(code)


def serve() -> None:
    """Answer orders until the parent closes the pipe."""
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            code = _forked(json.loads(line), out, err)
            out.seek(0)
            err.seek(0)
            print(json.dumps({"code": code, "out": out.read(), "err": err.read()}), flush=True)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    from support.huge_pages import collapse, reserve

    reserve()
    fakes = ["cuda.bindings.runtime", "tensorrt"] if "LAYERWISE_FAKE_TRT" in os.environ else []
    for module in (*fakes, "numpy", "onnx", "onnxruntime", *sys.argv[1:]):
        importlib.import_module(module)
    if fakes:
        sys.modules["tensorrt"]._forward.real()
    gc.collect()
    gc.freeze()
    collapse()
    serve()
