"""Which cluster is meant, as a text says it: `local`, `local:4`, `tcp://host:8786`, `host:8786`, `slurm:PROFILE`."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.installed import missing
from layerwise._tool.backends.text import shown

FORMS = "local, local:N, HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or slurm:PROFILE"
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss)://)?(?:[\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}")
_PROFILE: dict[str, type] = {
    "queue": str, "account": str, "cores": int, "memory": str, "walltime": str, "gpus": int, "workers": int,
    "wait": int, "directives": list, "prologue": list, "python": str, "interface": str,
}  # fmt: skip
_KINDS: dict[type, str] = {str: "text", int: "whole number", list: "list of texts"}


class Where(Struct, frozen=True):
    """kind: a cluster that we start on this machine, one at `address`, or jobs of Slurm. workers: how many we start.

    profile: of Slurm, as the file of the matrix has it. wait: seconds that may pass until the first worker is there.
    """

    kind: Literal["local", "address", "slurm"]
    text: str
    address: str = ""
    workers: int = 1
    profile: dict[str, Any] = {}
    wait: float = 120.0

    def slurm(self) -> dict[str, Any]:
        """The arguments of dask-jobqueue's SLURMCluster: a worker process for each job, a cell at a time."""
        found, gpus = self.profile, int(self.profile.get("gpus", 0))
        given = {
            "queue": found.get("queue"), "account": found.get("account"), "cores": 1, "processes": 1,
            "job_cpu": found.get("cores", 1), "memory": found.get("memory", "16GB"),
            "walltime": found.get("walltime", "04:00:00"), "job_script_prologue": list(found.get("prologue", [])),
            "job_extra_directives": [*found.get("directives", []), *([f"--gres=gpu:{gpus}"] if gpus else [])],
            "worker_extra_args": ["--resources", f"GPU={gpus}"] if gpus else [],
            "python": found.get("python"), "interface": found.get("interface"),
            "scheduler_options": {"dashboard": False, "dashboard_address": None},
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}


def parse_where(text: str, workers: int | None, profiles: Mapping[str, Any], usual: int) -> Where:
    """The cluster that a text means. workers: as asked for; usual: how many otherwise. UsageError for what is none."""
    head, _, rest = text.partition(":")
    if head == "local":
        if rest and not re.fullmatch(r"[1-9]\d{0,3}", rest):
            raise UsageError(f"--cluster {shown(text, 80)}: local:N wants a number of workers")
        return Where(kind="local", text=text, workers=workers or int(rest or usual))
    if head == "slurm":
        profile = checked_profile(rest, profiles)
        count = workers or int(profile.get("workers", 1))
        return Where(kind="slurm", text=text, workers=count, profile=profile, wait=float(profile.get("wait", 3600)))
    if not _ADDRESS.fullmatch(text):
        raise UsageError(f"--cluster {shown(text, 80)}: write {FORMS}")
    return Where(kind="address", text=text, address=text)


def checked_profile(name: str, profiles: Mapping[str, Any]) -> dict[str, Any]:
    """A profile of Slurm by its name. UsageError for one that is not there, or that has another key or value."""
    if name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise UsageError(f"slurm.{shown(name, 60)}: there is no such profile; the file has: {shown(known, 200)}")
    profile = profiles[name]
    if not isinstance(profile, dict):
        raise UsageError(f"slurm.{shown(name, 60)}: must be a table")
    for key, value in profile.items():
        place = f"slurm.{shown(name, 60)}.{shown(key, 60)}"
        if key not in _PROFILE:
            raise UsageError(f"{place}: no such key; there are {', '.join(_PROFILE)}")
        kind = _PROFILE[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UsageError(f"{place}: must be a {_KINDS[kind]}")
        if isinstance(value, int) and value < 0:
            raise UsageError(f"{place}: must not be negative")
    return dict(profile)


def require_dask() -> None:
    """MissingPackage without dask: before a job is made that would end with it."""
    if find_spec("distributed") is None:
        raise missing("distributed", "--cluster", ModuleNotFoundError(name="distributed"))
