"""Many command lines of one program, each in a fork of a process that has imported it: start-up is paid once.

`surgeon sanitize` runs its job's action in the fork, too, not in a process of the job's own.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

PRELOADED = {
    "polygraphy": ("polygraphy.tools._main", "onnx", "onnxruntime", "onnx_graphsurgeon"),
    "layerwise": (
        "layerwise._tool.tui.__main__",
        "onnx",
        "onnxruntime",
        "layerwise._tool.surgery.sanitize.action",
        "layerwise._tool.tui.cli.surgeon.sanitize",
    ),
}
LIMIT = 30  # seconds for one command


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    text: str


def run_many(program: str, lines: Sequence[Sequence[str | Path]], cwd: Path) -> list[Done]:
    """Run each line (without the program's own name) of "polygraphy" or "layerwise" in `cwd`, one after another."""
    words = json.dumps([list(map(str, line)) for line in lines])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, __file__, program], cwd=cwd, input=words, capture_output=True, text=True, env=environment,
        timeout=3000, check=True,
    )  # fmt: skip
    return [Done(*item) for item in json.loads(done.stdout.splitlines()[-1])]


def _in_fork(program: str, line: list[str]) -> Done:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            code = 70
            signal.alarm(LIMIT)
            with contextlib.suppress(BaseException):
                code = _call(program, line)
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return Done(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"))


def _call(program: str, line: list[str]) -> int:
    if program == "layerwise" and line[:2] == ["surgeon", "sanitize"]:
        return _sanitize(line[2:])
    main: Any = importlib.import_module(PRELOADED[program][0]).main
    sys.argv = [program, *line]
    try:
        code = main(line) if program == "layerwise" else main()
    except SystemExit as stop:
        code = stop.code
    return int(code or 0)


def _sanitize(words: list[str]) -> int:
    from layerwise._tool.surgery.sanitize.action import sanitize
    from layerwise._tool.tui.cli.direct import DirectContext
    from layerwise._tool.tui.cli.leaf import make_log
    from layerwise._tool.tui.cli.options.logging import LOGGING
    from layerwise._tool.tui.cli.parser import Parser
    from layerwise._tool.tui.cli.surgeon.common import open_file
    from layerwise._tool.tui.cli.surgeon.fold import folded_here
    from layerwise._tool.tui.cli.surgeon.sanitize import fill_sanitize, job_params

    parser = Parser("layerwise surgeon sanitize")
    fill_sanitize(parser)
    LOGGING.add(parser)
    args = parser.parse_args(words)
    log = make_log(args)
    with open_file(args, log) as file:
        if not folded_here(args, log, file):
            sanitize(DirectContext(job_params(args), log))  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    for module in PRELOADED[sys.argv[1]]:
        importlib.import_module(module)
    print(json.dumps([_in_fork(sys.argv[1], line) for line in json.loads(sys.stdin.read())]))
