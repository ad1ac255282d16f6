"""Earlier runs of a matrix: the one that runs now, the last one, one of a day, one in a file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.folder import job_id, raw_spec
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.workspace.store import Workspace

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")


def running(workspace: "Workspace", file: Path) -> int:
    """The job that runs this matrix now, 0 if none does."""
    for job in reversed(workspace.ids()):
        if _is_of(workspace, job, file) and not workspace.view(job).final:
            return job
    return 0


def newest(workspace: "Workspace", file: Path) -> int:
    """The newest job of this matrix, whatever became of it; 0 if there is none."""
    return next((job for job in reversed(workspace.ids()) if _is_of(workspace, job, file)), 0)


def newest_result(workspace: "Workspace", file: Path) -> Path | None:
    """The result file of the last run of all cells that has left one, None if there is none."""
    found = (_result(workspace, job) for job in reversed(workspace.ids()) if _is_of(workspace, job, file))
    return next((path for path in found if path is not None and not _is_part(path)), None)


def _is_part(path: Path) -> bool:
    """Whether a run was of some cells alone (`--only failed`), so that it says nothing of the others."""
    from layerwise._tool.debugtools.matrix.against import read_result

    return read_result(path).subset


def result_file(workspace: "Workspace", file: Path, which: str) -> Path:
    """The result file of an earlier run. which: `last`, a job's number, a day or minute (the last run until then), or a
    path. UsageError where there is none.
    """
    if Path(which).is_file() and not job_id(which):
        return Path(which).absolute()
    if job_id(which):
        found = _result(workspace, job_id(which))
        if found is None:
            raise UsageError(f"--against {which}: job {which} has left no result of a matrix")
        return found
    if which != "last" and not _DATE.fullmatch(which):
        raise UsageError(
            f"--against {shown(which, 80)}: write last, a job's number, a day (2026-11-22) or a result file"
        )
    for job in reversed(workspace.ids()):
        if _is_of(workspace, job, file):
            found = _result(workspace, job)
            if found is not None and (which == "last" or _when(found) <= _until(which)):
                return found
    what = (
        "no earlier run of this matrix has ended" if which == "last" else f"no run of this matrix had ended by {which}"
    )
    raise UsageError(f"--against {which}: {what}")


def _until(which: str) -> str:
    text = which.replace(" ", "T")
    return text + "T23:59:59"[len(text) - 10 :] if len(text) < 19 else text


def _when(path: Path) -> str:
    import time

    from layerwise._tool.debugtools.matrix.against import read_result

    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(read_result(path).started))


def _is_of(workspace: "Workspace", job: int, file: Path) -> bool:
    raw = raw_spec(workspace.jobs / str(job))
    params = raw.get("params")
    return raw.get("action") == "matrix" and isinstance(params, dict) and params.get("file") == str(file)


def _result(workspace: "Workspace", job: int) -> Path | None:
    from layerwise._tool.debugtools.matrix.action import RESULT

    found = workspace.jobs / str(job) / "artifacts" / RESULT
    return found if found.is_file() else None
