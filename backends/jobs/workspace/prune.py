"""Removing jobs that have ended."""

import os
import shutil
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.filesystem.regular import Damaged
from layerwise._tool.backends.jobs.folder import LOCK, is_own, is_started, write_own
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.conclude import sweep_files
from layerwise._tool.backends.jobs.processes.liveness import held_elsewhere
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.backends.jobs.workspace.store import Workspace

_HALF_MADE = 60.0
_LOOKING = 1.0  # seconds that another process may have a lock only to look, on a busy machine
_NO_LOCK = -1


def prune(
    workspace: Workspace, jobs: Iterable[int] | None = None, *, keep: int = 0, older_than: float = 0.0,
    most: int | None = None,
) -> tuple[list[int], int]:  # fmt: skip
    """Remove jobs that have ended; returns their ids and the bytes they took.

    `jobs` names them, else all but the newest `keep` that ended more than `older_than` seconds ago go; with `most` the
    oldest of these alone, until all jobs of the workspace take no more than so many bytes.
    """
    alive = held_elsewhere()
    _clean(workspace, alive)
    named = [workspace.view(job) for job in jobs] if jobs is not None else _ended(workspace, keep, older_than)
    removed, freed = [], 0
    beyond = sum(view.bytes_on_disk for view in workspace.list_jobs()) - most if most is not None else None
    for view in named:
        size = view.bytes_on_disk
        if beyond is not None and freed >= beyond:
            break
        if view.final and not _is_in(view.folder, alive) and _remove(workspace, view):
            removed.append(view.id)
            freed += size
    return removed, freed


def _ended(workspace: Workspace, keep: int, older_than: float) -> list[JobView]:
    ended = [view for view in workspace.list_jobs() if view.final and not view.damage]
    ended = ended[: len(ended) - keep]
    if older_than <= 0:  # also those that ended later than now: the clock may have been set back
        return ended
    return [view for view in ended if (view.ended or 0.0) <= time.time() - older_than]


def _clean(workspace: Workspace, alive: Collection[str]) -> None:
    """Remove what killed processes left half made or half removed."""
    for trash in workspace.jobs.glob(".trash-*"):
        discard(trash)
    for number in workspace.numbers():
        folder = workspace.jobs / str(number)
        with suppress(OSError):
            half_made = not is_started(folder) and folder.lstat().st_mtime < time.time() - _HALF_MADE
            if half_made and not _is_in(folder, alive) and _is_free(folder):
                discard(folder)


def _is_in(folder: Path, alive: Collection[str]) -> bool:
    return os.path.realpath(folder) in alive


def _is_free(folder: Path) -> bool:
    """Whether a folder has no lock that somebody holds. Raises OSError where it is no folder."""
    lock = locks.probe(folder / LOCK)
    if lock is not None:
        os.close(lock)
    return lock is not None


def _remove(workspace: Workspace, view: JobView) -> bool:
    try:
        lock = locks.hold_within(view.folder / LOCK, _patience(view)) if is_own(view.folder) else _NO_LOCK
    except Damaged:  # nobody can hold it
        lock = _NO_LOCK
    except FileNotFoundError:  # another has just removed the job
        return False
    if lock is None:
        return False
    sweep_files(view.folder)
    trash = workspace.jobs / f".trash-{view.id}-{time.time_ns()}"
    try:
        view.refresh()
        if not view.final:  # it has begun anew meanwhile
            return False
        with suppress(OSError):  # on a full disk; then an id may be given twice
            write_own(workspace.last_file, str(max([workspace.last_pruned(), *workspace.numbers()])).encode())
        view.folder.rename(trash)
    except FileNotFoundError:
        return False
    finally:
        if lock != _NO_LOCK:
            os.close(lock)
    discard(trash)
    return True


def _patience(view: JobView) -> float:
    """Seconds to wait for the lock: of a job that has just ended its supervisor may have it still."""
    return locks.ENDING if abs(time.time() - (view.ended or 0.0)) < locks.ENDING else _LOOKING


def discard(path: Path) -> None:
    """Remove a folder with all that is in it, or a file, or a link but not what it leads to."""
    if is_own(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
