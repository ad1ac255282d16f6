"""Ending a writer before each of its steps on the file system: nothing depends on who is quicker.

The steps are what Python's audit events tell of: renames, removals, links, folders made, files opened to be written.
What a kill before a step leaves is what lies on the disk then, and no lock: one run in a fork takes a copy at each.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from support.clean_fork import fork
from support.quick import PLACE, PREFIX

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
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=PLACE) as folder:
        seen = 0

        def copy(event: str, args: tuple[Any, ...]) -> bool:
            nonlocal seen
            seen += 1
            shutil.copytree(place, Path(folder, str(seen)), symlinks=True)
            return False

        assert _run(lambda: _traced(work, copy)) == 0
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


def every_failure(
    prepare: Callable[[], object], work: Callable[[], object], place: Path, error: OSError
) -> Iterator[int]:
    """For each step that is no removal its number, the folder `place` as the work leaves it where that step raises.

    prepare: makes `place` as it is before; all that the work writes lies there. One fork does the work over and over.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=PLACE) as folder:
        assert _run(lambda: _fail_everywhere(prepare, work, place, error, Path(folder))) == 0
        for step in count(1):
            if not (was := Path(folder, str(step))).exists():
                return
            _put(was, place)
            yield step


def _fail_everywhere(
    prepare: Callable[[], object], work: Callable[[], object], place: Path, error: OSError, folder: Path
) -> None:
    """Copy `place` to folder/STEP as each step that fails leaves it, until there is none left to fail."""
    seen = fails_at = 0

    def fail(event: str, args: tuple[Any, ...]) -> bool:
        nonlocal seen
        seen += event not in _REMOVALS
        return event not in _REMOVALS and seen == fails_at

    trace = _Trace(fail, error)
    for step in count(1):
        prepare()
        seen, fails_at, trace.raised = 0, step, False
        with suppress(BaseException), trace:
            work()
        if not trace.raised:
            return
        gc.collect()  # what the error holds is let go, as at a process's end
        shutil.copytree(place, folder / str(step), symlinks=True)


class _Trace:
    """Inside, `at_step` is asked at every step of this process, and `error` is raised where it says so."""

    def __init__(self, at_step: AtStep, error: OSError | None = None) -> None:
        self.raised = False
        self._at_step, self._error, self._on = at_step, error, False
        sys.addaudithook(self._hook)

    def __enter__(self) -> None:
        self._on = True

    def __exit__(self, *_: object) -> None:
        self._on = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on or not _is_step(event, args):
            return
        self._on = False
        try:
            raises = self._at_step(event, args)
        finally:
            self._on = True
        if raises and self._error is not None:
            self.raised = True
            raise self._error


def _traced(work: Callable[[], object], at_step: AtStep) -> None:
    with _Trace(at_step):
        work()


def _run(work: Callable[[], object]) -> int:
    """Do the work in a fork; 0 if it was done."""
    child = fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
