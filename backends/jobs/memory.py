"""Whether the kernel killed something because memory ran out."""

from pathlib import Path

from backends.memory import control_group_files

_COUNTER = "oom_kill"


def oom_kills() -> int:
    """A number that grows when the kernel kills a process for memory, on this machine or in this control
    group.
    """
    files = [Path("/proc/vmstat"), *control_group_files("memory.events", "memory.oom_control")]
    return sum(map(_counter, files))


def _counter(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, value = line.partition(" ")
        if key == _COUNTER and value.strip().isdecimal():
            return int(value)
    return 0
