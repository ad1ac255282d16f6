"""Whether the kernel killed something because memory ran out."""

from pathlib import Path

_COUNTERS = {
    "/proc/vmstat": "oom_kill",
    "/sys/fs/cgroup/memory.events": "oom_kill",
    "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill",
}


def oom_kills() -> int:
    """A number that grows when the kernel kills a process for memory, on this machine or in this control
    group.
    """
    return sum(_counter(Path(path), name) for path, name in _counter_files().items())


def _counter_files() -> dict[str, str]:
    files = dict(_COUNTERS)
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            files[f"/sys/fs/cgroup{path}/memory.events"] = "oom_kill"
        elif "memory" in controllers.split(","):
            files[f"/sys/fs/cgroup/memory{path}/memory.oom_control"] = "oom_kill"
    return files


def _counter(path: Path, name: str) -> int:
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdecimal():
            return int(value)
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
