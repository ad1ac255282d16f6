"""Writing down how an attempt ended.

Only the holder of the job's lock may do it, after the worker is dead.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from backends.jobs.cards import Ending, outcome
from backends.jobs.events import EventWriter, last_events
from backends.jobs.folder import LOG, TEMPORARY, release_reserve
from backends.jobs.process import sweep
from backends.temporary import sweep as sweep_temporary
from backends.temporary import sweep_record


def conclude(folder: Path, attempt: int, ending: Ending) -> str:
    """Kill and remove what the worker left behind and write the final state, with a card if need be; returns the state.

    On a full disk the reserve is given back first. Raises OSError when even that does not help.
    """
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
