"""Writing down how an attempt ended.

Only the holder of the job's lock may do it, after the worker is dead.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from layerwise._tool.backends.errors import is_scarce
from layerwise._tool.backends.filesystem.temporary import sweep as sweep_temporary
from layerwise._tool.backends.filesystem.temporary import sweep_record
from layerwise._tool.backends.jobs.folder import JOURNAL, LOCK, LOG, TEMPORARY, is_own, release_reserve
from layerwise._tool.backends.jobs.journal.events import EventWriter, last_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.cards import Ending, outcome
from layerwise._tool.backends.jobs.processes.control import sweep
from layerwise._tool.backends.jobs.workspace import locks

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
    from layerwise._tool.backends.jobs.processes.liveness import lives

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
    """Kill and remove what the worker left behind and write the final state, with a card if need be; returns the state.

    On a full disk the reserve is given back first. Raises OSError when even that does not help.
    """
    if not ending.swept:
        sweep(folder)
    sweep_files(folder)
    state, card = outcome(folder, attempt, ending)
    try:
        _write(folder, attempt, state, card)
    except OSError:
        release_reserve(folder)
        _write(folder, attempt, state, card)
    return state


def sweep_files(folder: Path) -> None:
    """Remove the temporary files that dead writers of the job left, wherever they are. Needs the job's lock."""
    sweep_record(folder / TEMPORARY)
    sweep_temporary(folder / "artifacts")


def _write(folder: Path, attempt: int, state: str, card: dict[str, object] | None) -> None:
    with journal(folder) as writer:
        if card is not None:
            writer.write("card", **card)
        when = {"ended": _last_sign(folder)} if state == "lost" else {}
        writer.write("state", state=state, attempt=attempt, **when)


def _last_sign(folder: Path) -> float:
    """When the job was last seen alive: nobody saw it end."""
    times = [event["t"] for event in last_events(folder) if event["type"] != "card"][-1:]
    with suppress(OSError):
        times.append((folder / LOG).stat().st_mtime)
    return float(min(time.time(), max(times, default=time.time())))


@contextmanager
def journal(folder: Path) -> Iterator[EventWriter]:
    """The job's journal, open for a few events."""
    writer = EventWriter(folder)
    try:
        yield writer
    finally:
        writer.close()
