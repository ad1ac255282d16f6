"""The workspace, the settings, and where all of that is: for `doctor` and `where`."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import config_file
from layerwise._tool.backends.jobs.folder import disk_use, job_id
from layerwise._tool.backends.jobs.workspace.leases import LEASES, leases_folder
from layerwise._tool.backends.jobs.workspace.ownership import HOME, check_above, check_owner
from layerwise._tool.backends.jobs.workspace.root import default_root
from layerwise._tool.backends.limits.memory import limit
from layerwise._tool.backends.settings import load_settings, project_file
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.tui.cli.doctor.finding import Finding

_WORKSPACE, _SETTINGS = "Workspace", "Settings"
_LARGE = 10 * 10**9
_LITTLE = 2 * 10**9
_FEW_FILES = 24
_SMALL_FILE = 10**6
_PRUNE = "layerwise jobs prune --older-than 7d"


def workspace() -> Iterator[Finding]:
    """Whose it is, how large, and how much room is left. Nothing is made."""
    try:
        root = default_root().absolute()
    except LayerwiseError as error:
        yield Finding(_WORKSPACE, "folder", "wrong", str(error), f"export {HOME}=/a/folder/of/yours")
        return
    wrong = _fault(root, HOME)
    if wrong:
        yield Finding(_WORKSPACE, "folder", "wrong", wrong, f"export {HOME}=/a/folder/of/yours")
    else:
        told = "yours" if root.is_dir() else "made when it is first needed"
        yield Finding(_WORKSPACE, "folder", "ok", f"{root}, {told}")
        if root.is_dir():
            yield _size(root)
        yield _room(_above(root))
    leases = leases_folder()
    wrong = _fault(leases, LEASES)
    mend = f"export {LEASES}=/a/folder/of/yours" if wrong else ""
    yield Finding(_WORKSPACE, "leases", "wrong" if wrong else "ok", wrong or str(leases), mend)
    yield _memory()
    yield from limits()


def _above(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _fault(folder: Path, variable: str) -> str:
    """Why no job could keep anything in a folder, "" where it could."""
    try:
        check_above(folder, variable)
        if folder.is_dir():
            check_owner(folder, variable)
        elif os.path.lexists(folder):
            return f"{folder} is no folder"
        if not os.access(_above(folder), os.W_OK | os.X_OK):
            return f"{folder} cannot be written"
    except (LayerwiseError, OSError) as error:
        return str(error)
    return ""


def limits() -> Iterator[Finding]:
    """Limits of this shell with which no job runs; none where they do not matter."""
    files, size = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE))
    if 0 <= files < _FEW_FILES:
        yield Finding(_WORKSPACE, "open files", "wrong", f"{files} at most: a job needs {_FEW_FILES}", "ulimit -n 1024")
    if 0 <= size < _SMALL_FILE:
        told = f"files of {size_text(size)} at most: jobs and models are larger"
        yield Finding(_WORKSPACE, "file size", "wrong", told, "ulimit -f unlimited")


def _size(root: Path) -> Finding:
    jobs, cache = disk_use(root / "jobs"), disk_use(root / "cache")
    count = sum(1 for name in _names(root / "jobs") if job_id(name))
    told = f"{count:,} jobs take {size_text(jobs)}, caches {size_text(cache)}"
    large = jobs + cache > _LARGE
    return Finding(_WORKSPACE, "size", "note" if large else "ok", told, _PRUNE if large else "")


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (names are enough)
    except OSError:
        return []


def _room(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(_WORKSPACE, "disk", "wrong", f"{folder}: {error.strerror}")
    little = free < _LITTLE
    return Finding(_WORKSPACE, "disk", "note" if little else "ok", f"{size_text(free)} free", _PRUNE if little else "")


def _memory() -> Finding:
    try:
        most = limit()
    except LayerwiseError as error:
        return Finding(_WORKSPACE, "memory", "wrong", str(error), "unset LAYERWISE_MEMORY")
    cores = len(os.sched_getaffinity(0))
    told = "no limit" if most is None else f"{size_text(most)} for each job's process"
    return Finding(_WORKSPACE, "memory", "ok", f"{told}, {cores} core{'s' * (cores > 1)}")


def settings() -> Iterator[Finding]:
    """Which files of settings are read, and what is wrong in them."""
    loaded = load_settings()
    for path in loaded.files:
        yield Finding(_SETTINGS, "file", "ok", str(path))
    if not loaded.files:
        yield Finding(_SETTINGS, "file", "ok", f"none; {config_file()} would be yours")
    yield from (Finding(_SETTINGS, "setting", "wrong", text, "change that file") for text in loaded.problems)


def places() -> dict[str, str | None]:
    """Path of each thing by name; None where there is none. Raises LayerwiseError for a workspace that has no place."""
    root = default_root().absolute()
    project = project_file()
    return {
        "workspace": str(root),
        "jobs": str(root / "jobs"),
        "cache": str(root / "cache"),
        "sessions": str(root / "sessions"),
        "edits": str(root / "edits"),
        "yanked": str(root / "yank.txt"),
        "settings": str(config_file()),
        "project": str(project) if project is not None else None,
        "leases": str(leases_folder()),
        "program": str(Path(__file__).parents[3]),
    }
