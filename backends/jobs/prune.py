"""Removing jobs that have ended."""

import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from backends.jobs import locks
from backends.jobs.conclude import sweep_files
from backends.jobs.folder import LOCK, SPEC, disk_use, write_own
from backends.jobs.view import JobView

if TYPE_CHECKING:
    from backends.jobs.store import Workspace

_HALF_MADE = 60.0


def prune(workspace: "Workspace", jobs: Iterable[int] | None, keep: int, older_than: float) -> tuple[list[int], int]:
    """See `Workspace.prune`."""
    _clean(workspace)
    named = [workspace.view(job) for job in jobs] if jobs is not None else _ended(workspace, keep, older_than)
    removed, freed = [], 0
    for view in named:
        size = disk_use(view.folder)
        if _remove(workspace, view):
            removed.append(view.id)
            freed += size
    return removed, freed


def _ended(workspace: "Workspace", keep: int, older_than: float) -> list[JobView]:
    ended = [view for view in workspace.list_jobs() if view.final]
    return [view for view in ended[: len(ended) - keep] if (view.ended or 0.0) <= time.time() - older_than]


def _clean(workspace: "Workspace") -> None:
    """Remove what killed processes left half made or half removed."""
    for trash in workspace.jobs.glob(".trash-*"):
        shutil.rmtree(trash, ignore_errors=True)
    for number in workspace.numbers():
        folder = workspace.jobs / str(number)
        if not (folder / SPEC).exists() and folder.stat().st_mtime < time.time() - _HALF_MADE:
            shutil.rmtree(folder, ignore_errors=True)


def _remove(workspace: "Workspace", view: JobView) -> bool:
    lock = locks.hold_within(view.folder / LOCK, 0.1)
    if lock is None:
        return False
    sweep_files(view.folder)
    trash = workspace.jobs / f".trash-{view.id}-{time.time_ns()}"
    try:
        with suppress(OSError):  # on a full disk; then an id may be given twice
            write_own(workspace.last_file, str(max([workspace.last_pruned(), *workspace.numbers()])).encode())
        view.folder.rename(trash)
    finally:
        os.close(lock)
    shutil.rmtree(trash, ignore_errors=True)
    return True
