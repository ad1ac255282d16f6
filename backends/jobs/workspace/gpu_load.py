"""How busy the GPUs of this machine are, and whose processes are on them, as nvidia-smi tells."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

_GPUS = "index,name,uuid,utilization.gpu,memory.used,memory.total"
_PROCESSES = "gpu_uuid,pid,used_memory"
_MIB = float(1 << 20)
_LONGEST = 20.0


class GpuProcess(Struct, frozen=True):
    """user: who runs it, "" where that cannot be told. memory: bytes on the GPU, 0 where that is not told."""

    pid: int
    user: str = ""
    memory: float = 0.0


class GpuLoad(Struct, frozen=True):
    """busy: percent of the last moment, None where the driver does not tell. used, total: bytes of its memory."""

    index: int
    name: str
    uuid: str
    busy: float | None = None
    used: float = 0.0
    total: float = 0.0
    processes: Sequence[GpuProcess] = ()


def gpu_loads() -> list[GpuLoad]:
    """The GPUs in the driver's order, none where there is no driver to ask. Takes some tenths of a second."""
    gpus = _asked(f"--query-gpu={_GPUS}")
    processes = _asked(f"--query-compute-apps={_PROCESSES}") if gpus else []
    return [_load(fields, processes) for fields in gpus if len(fields) == 6 and fields[0].isdigit()]


def _load(fields: Sequence[str], processes: Sequence[Sequence[str]]) -> GpuLoad:
    index, name, uuid, busy, used, total = fields
    here = tuple(
        GpuProcess(int(pid), user_of(int(pid)), _number(memory) * _MIB)
        for gpu, pid, memory in (line for line in processes if len(line) == 3)
        if gpu == uuid and pid.isdigit()
    )
    share = _number(busy) if busy.replace(".", "", 1).isdigit() else None
    return GpuLoad(int(index), name, uuid, share, _number(used) * _MIB, _number(total) * _MIB, here)


def _asked(query: str) -> list[list[str]]:
    words = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            words, capture_output=True, text=True, timeout=_LONGEST, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return [[field.strip() for field in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]


def _number(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:  # [N/A], and what newer drivers say
        return 0.0


def user_of(pid: int) -> str:
    """Who runs a process, "" where that cannot be told: it is gone, or in another container."""
    import pwd

    try:
        return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name
    except (OSError, KeyError):
        return ""
