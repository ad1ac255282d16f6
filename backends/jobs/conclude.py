"""Writing down how an attempt ended.

Only the holder of the job's lock may do it, after the worker is dead.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.jobs import locks
from backends.jobs.cards import Ending, outcome
from backends.jobs.events import EventWriter
from backends.jobs.folder import JOURNAL, LOCK, is_own, release_reserve
from backends.jobs.process import sweep
from backends.jobs.view import JobView
from backends.regular import is_scarce

_NO_LOCK = -1


def settle(folder: Path) -> bool:
    """Whether nobody holds the job any more; if it has no final state then, writes down how it ended.

    A lock file that is free may have taken the place of the one that is held: who lives is asked before a word is
    written. Where journal or lock are no files nothing is written. Raises OSError when this process lacks what it takes
    to look.
    """
    if not is_own(folder):
        return True
    try:
        lock = locks.probe(folder / LOCK)
    except OSError as error:  # nothing there, no file, a disk that is read only
        if is_scarce(error):
            raise
        lock = _NO_LOCK
    if lock is None:
        return False
    try:
        return _settled(folder, lock != _NO_LOCK)
    except OSError as error:
        if is_scarce(error):
            raise
        return True
    finally:
        if lock != _NO_LOCK:
            os.close(lock)


def _settled(folder: Path, locked: bool) -> bool:
    from backends.jobs.living import lives

    view = JobView(folder)
    view.refresh()
    if view.final:
        return True
    if lives(folder, view.pid):
        return False
    view.refresh()  # who held another file than ours may have had the last word since we read
    if not view.final and locked and os.path.lexists(folder / JOURNAL):
        conclude(folder, view.attempt, Ending())
    return True


def conclude(folder: Path, attempt: int, ending: Ending) -> str:
    """Kill what the worker left behind and write the final state, with a card if need be; returns the state.

    On a full disk the reserve is given back first. Raises OSError when even that does not help.
    """
    sweep(folder)
    state, card = outcome(folder, attempt, ending)
    try:
        _write(folder, attempt, state, card)
    except OSError:
        release_reserve(folder)
        _write(folder, attempt, state, card)
    return state


def _write(folder: Path, attempt: int, state: str, card: dict[str, object] | None) -> None:
    with journal(folder) as writer:
        if card is not None:
            writer.write("card", **card)
        writer.write("state", state=state, attempt=attempt)


@contextmanager
def journal(folder: Path) -> Iterator[EventWriter]:
    """The job's journal, open for a few events."""
    writer = EventWriter(folder)
    try:
        yield writer
    finally:
        writer.close()
