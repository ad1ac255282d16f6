"""Killing a writer before each of its steps on the file system, one run a step: nothing depends on who is quicker.

The steps are what Python's audit events tell of: renames, removals, links, folders made, files opened to be written.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_REMOVALS = frozenset({"os.remove", "os.rmdir"})
_STEPS = _REMOVALS | {"os.rename", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _is_step(event: str, args: tuple[Any, ...]) -> bool:
    if event == "os.mkdir":
        return not os.path.isdir(args[0])  # noqa: PTH112 (Path would be traced too)
    if event != "open":
        return event in _STEPS
    mode, flags = args[1], args[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(flags & _WRITES)


def run_until(work: Callable[[], object], step: int, error: OSError | None = None) -> bool:
    """Do the work in a fork that is killed before its `step`-th step; whether it came that far.

    error: raised in place of a kill, where the step is no removal.
    """
    child = os.fork()
    if child == 0:
        _child(work, step, error)
    status = os.waitpid(child, 0)[1]
    reached = os.waitstatus_to_exitcode(status)
    assert reached in (0, 3, -signal.SIGKILL), f"the writer ended with {reached}"
    return reached != 0


def _child(work: Callable[[], object], step: int, error: OSError | None) -> NoReturn:
    seen = 0

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if not _is_step(event, args) or (error is not None and event in _REMOVALS):
            return
        seen += 1
        if seen != step:
            return
        if error is not None:
            raise error
        os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(hook)
        work()
        code = 0 if seen < step else 3
    except BaseException as raised:
        code = 3 if error is not None and (raised is error or seen >= step) else 1
        if code == 1:
            sys.excepthook(type(raised), raised, raised.__traceback__)
    finally:
        os._exit(code)


def every_step(
    prepare: Callable[[], object], work: Callable[[], object], error: OSError | None = None
) -> Iterator[int]:
    """For each step: what was before is made anew, the work is ended there, and the step's number is yielded."""
    step = 1
    while True:
        prepare()
        if not run_until(work, step, error):
            return
        yield step
        step += 1
