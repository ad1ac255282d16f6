"""What a job is to do, as a value that serialises to JSON (`spec.json` in the job's folder)."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.regular import read_regular
from layerwise._tool.backends.jobs.folder import MAX_SPEC, SPEC


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One job.

    action: a name that the module of the actions knows (`backends.jobs.actions`); params: what it takes.
    title: shown in lists. command: the equivalent command line, shown in crash cards. cwd: folder the worker
    starts in.
    gpus: leased for the job alone; cpus: slots of the workspace (0: none, for work that is mostly idle).
    timeout: seconds of running, time spent waiting for an answer not counted; None is no limit.
    memory: bytes of memory of its own that the worker may hold, what files back not counted; None: `memory.limit`.
    env: added to the worker's environment. umask: of the user's own files; None: of who starts the job.
    """

    action: str
    params: dict[str, Any] = {}
    title: str = ""
    command: list[str] = []
    cwd: str = ""
    gpus: int = 0
    cpus: int = 1
    timeout: float | None = None
    memory: int | None = None
    env: dict[str, str] = {}
    umask: int | None = None
    source: Literal["cli", "tui"] = "cli"


def load_spec(folder: Path) -> JobSpec:
    """The spec of a job. Raises BadFile."""
    try:
        return msgspec.json.decode(read_regular(folder / SPEC, MAX_SPEC, own=True), type=JobSpec)
    except OSError as error:
        raise BadFile(folder / SPEC, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:  # MsgspecError and what is not UTF-8 among them
        raise BadFile(folder / SPEC, str(error)) from error
