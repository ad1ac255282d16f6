"""Ending a writer before each of its steps on the file system: nothing depends on who is quicker.

The steps are what Python's audit events tell of: renames, removals, links, folders made, files opened to be written.
What a kill before a step leaves is what lies on the disk then, and no lock: one run in a fork takes a copy at each.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

AtStep = Callable[[str, tuple[Any, ...]], bool]
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


def every_kill(prepare: Callable[[], object], work: Callable[[], object], place: Path) -> Iterator[int]:
    """For each step its number, the folder `place` as a kill before that step leaves it; in the end, as the work does.

    prepare: makes `place` as it is before; all that the work writes lies there.
    """
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        seen = 0

        def copy(event: str, args: tuple[Any, ...]) -> bool:
            nonlocal seen
            seen += 1
            shutil.copytree(place, Path(folder, str(seen)), symlinks=True)
            return False

        assert _run(work, copy) == 0
        shutil.copytree(place, Path(folder, "end"), symlinks=True)
        for step in count(1):
            if not (was := Path(folder, str(step))).exists():
                break
            _put(was, place)
            yield step
        _put(Path(folder, "end"), place)


def _put(source: Path, place: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(source, place, symlinks=True)


def every_failure(prepare: Callable[[], object], work: Callable[[], object], error: OSError) -> Iterator[int]:
    """For each step that is no removal: what was before is made anew, the step raises, and its number is yielded."""
    for step in count(1):
        seen = 0

        def fail(event: str, args: tuple[Any, ...], step: int = step) -> bool:
            nonlocal seen
            seen += event not in _REMOVALS
            return event not in _REMOVALS and seen == step

        prepare()
        if not _run(work, fail, error):
            return
        yield step


def _run(work: Callable[[], object], at_step: AtStep, error: OSError | None = None) -> int:
    """Do the work in a fork; `error` is raised where `at_step` says so. 3 if it was raised, 0 if the work was done."""
    child = os.fork()
    if child == 0:
        _child(work, at_step, error)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, 3), f"the writer ended with {ended}"
    return ended


def _child(work: Callable[[], object], at_step: AtStep, error: OSError | None) -> NoReturn:
    looking = raised = False

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal looking, raised
        if looking or not _is_step(event, args):
            return
        looking = True
        try:
            raises = at_step(event, args)
        finally:
            looking = False
        if raises and error is not None:
            raised = True
            raise error

    code = 1
    try:
        sys.addaudithook(hook)
        work()
        code = 3 if raised else 0
    except BaseException as found:
        code = 3 if raised else 1
        if code == 1:
            sys.excepthook(type(found), found, found.__traceback__)
    finally:
        os._exit(code)
