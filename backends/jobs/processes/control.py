"""Processes of a job: how they are started, watched and made to end together with their children."""

import os
import resource
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.folder import LOG, tags_of
from layerwise._tool.backends.older_python import running

TAG = "LAYERWISE_JOB"
_ATTEMPT = "LAYERWISE_ATTEMPT"
ROOT = str(Path(__file__).parents[5])
_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_VIRTIO = Path("/sys/bus/virtio/devices")
_BALLOON, _REPORTS_FREE_PAGES = "0x0005", 5  # VIRTIO_BALLOON_F_REPORTING, a bit among the features
_SHELL = 9  # the highest descriptor that sh takes for redirections
_GUARD = 'trap "" TERM INT HUP; read worker && read _; [ -n "$worker" ] && kill -9 "$worker"; "$@"; kill -9 0'
_DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE)


def python(process: str, *arguments: str) -> list[str]:
    """The command that runs a module of this folder, without the current folder on its path."""
    return [*running(f"{__package__}.{process}"), *arguments]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, in which our modules can be imported, and that belongs to no
    job.
    """
    base = {key: value for key, value in os.environ.items() if key not in (TAG, _ATTEMPT)}
    folders = base.get("PYTHONPATH", "").split(os.pathsep) if base.get("PYTHONPATH") else []
    if ROOT not in folders:
        base["PYTHONPATH"] = os.pathsep.join([ROOT, *folders])
    return {**base, **changes}


@cache
def large_pages(devices: Path = _VIRTIO) -> Mapping[str, str]:
    """What has glibc 2.35 and later ask for large pages, in which a session of 100 MB opens in half the time.

    Nothing in a virtual machine that gives free memory back to its host: that gives it in large blocks, so that a large
    page is one which the host has to find and to clear anew, and the same session opens in twice the time.
    """
    return {} if any(map(_gives_memory_back, devices.glob("*"))) else _LARGE_PAGES


def _gives_memory_back(device: Path) -> bool:
    try:
        kind, features = ((device / name).read_text().strip() for name in ("device", "features"))
    except OSError:
        return False
    return kind == _BALLOON and features[_REPORTS_FREE_PAGES : _REPORTS_FREE_PAGES + 1] == "1"


def kept_numbers(keep: Sequence[int]) -> list[int]:
    """The numbers that inherited descriptors have in the new process: above all of `keep`, so that none is
    overwritten before it is taken over, and above those that a shell uses itself.

    Raises LayerwiseError where the limit on open files (ulimit -n) leaves no room for them.
    """
    numbers = list(range(max([_SHELL, *keep]) + 1, max([_SHELL, *keep]) + 1 + len(keep)))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if numbers and limit != resource.RLIM_INFINITY and numbers[-1] >= limit:
        raise LayerwiseError(f"too few files may be open here for a job (ulimit -n is {limit}): raise it to 64 or more")
    return numbers


def spawn(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    group: int = 0,
    session: bool = False,
    stdin: int | None = None,
    output: Path | None = None,
    keep: Sequence[int] = (),
) -> int:
    """Start a process with no descriptor of ours but `stdin`, `output` (appended) and `keep`; returns its id.

    `group` is the process group that it joins (0: one of its own); `session` gives it a session of its own
    instead. The descriptors of `keep` have the numbers `kept_numbers(keep)` there.
    """
    target = os.fspath(output) if output is not None else os.devnull
    files: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_OPEN, 1, target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    files += [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip(keep, kept_numbers(keep), strict=True)]
    options: Any = {"setsid": True} if session else {"setpgroup": group}
    return os.posix_spawn(
        command[0],
        list(command),
        env,
        file_actions=files,
        setsigdef=_DEFAULT_SIGNALS,
        setsigmask=[],
        **options,
    )


def spawn_detached(command: Sequence[str], keep: Sequence[int] = ()) -> None:
    """Start a process that is nobody's child, in a session of its own, with no terminal.

    Returns when the shell in between has ended, within some milliseconds. Raises OSError when it cannot be
    started.
    """
    shell = ["/bin/sh", "-c", '"$@" &', "sh", *command, *map(str, kept_numbers(keep))]
    pid = spawn(shell, environment(), session=True, keep=keep)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise OSError(f"the supervisor could not be started (status {status})")


def start_guard(env: Mapping[str, str]) -> tuple[int, int]:
    """Start what kills the worker whose process id it is told, all that bears the tag of `env`, and the process group
    that it leads, once the descriptor returned second is closed. Returns its process id first.

    It has no tag itself: it stays until all is swept. The worker goes first, since it would take the end of a command
    that it runs for an answer.
    """
    read_end, alive = os.pipe()
    command = ["/bin/sh", "-c", _GUARD, "sh", *python("sweeper", env.get(TAG, ""), env.get(_ATTEMPT, ""))]
    try:
        return spawn(command, {key: env[key] for key in env if key not in (TAG, _ATTEMPT)}, stdin=read_end), alive
    except OSError:
        os.close(alive)
        raise
    finally:
        os.close(read_end)


class WorkerProcess:
    """A worker, and a guard that kills all it has started when this process is gone. The guard is there before the
    worker and leads its process group.

    env: the worker's. start: starts the worker in a process group and returns its process id. Raises OSError.
    Make it in a thread that lives as long as the job: the kernel kills the worker when that thread ends.
    """

    def __init__(self, env: Mapping[str, str], start: Callable[[int], int]) -> None:
        self._guard, self._alive = start_guard(env)
        self.pid = 0
        try:
            self.pid = start(self._guard)
            os.write(self._alive, f"{self.pid}\n".encode())
            self.pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        except BaseException:
            self.signal_group(signal.SIGKILL)
            os.close(self._alive)
            for pid in filter(None, (self.pid, self._guard)):
                os.waitpid(pid, 0)
            raise

    def exited(self) -> bool:
        """Whether the worker has ended; it stays unreaped."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def signal_group(self, number: int) -> None:
        os.killpg(self._guard, number)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def bury(self) -> int:
        """Kill what is left of the group, reap worker and guard; returns the exit code, or -signal."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self.signal_group(signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.waitpid(self._guard, 0)
        os.close(self._alive)
        if self.pidfd >= 0:
            os.close(self.pidfd)
        return os.waitstatus_to_exitcode(status)


def start_worker(
    actions: str, folder: Path, attempt: int, env: Mapping[str, str], keep: Sequence[int]
) -> WorkerProcess:
    """A worker for one attempt of a job. `keep`: the descriptors of its lock and leases."""
    numbers = ",".join(map(str, kept_numbers(keep)))
    command = python("worker", actions, str(folder), str(attempt), str(os.getpid()), numbers)
    whole = tagged(env, folder, attempt)
    return WorkerProcess(whole, lambda group: spawn(command, whole, group=group, output=folder / LOG, keep=keep))


def tagged(env: Mapping[str, str], folder: Path, attempt: int) -> dict[str, str]:
    """The environment of a worker, by which its processes are known."""
    return {**env, TAG: str(folder), _ATTEMPT: str(attempt)}


def tagged_processes(tags: Collection[str], last: int | None = None) -> list[int]:
    """Processes that were started by a worker with one of these tags or by its children, wherever they have moved to
    since; not this one and its parent. last: those of later attempts are left out.
    """
    marks, ours = _marks(tags), {os.getpid(), os.getppid()}
    pids = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())
    return [pid for pid in pids if pid not in ours and _has_mark(pid, marks, last)]


def is_tagged(pid: int, folder: Path) -> bool:
    """Whether a process was started by a job's worker or its children, or is the worker."""
    return _has_mark(pid, _marks(tags_of(folder)))


def _marks(tags: Collection[str]) -> set[bytes]:
    return {os.fsencode(f"{TAG}={tag}") for tag in tags}


def _has_mark(pid: int, marks: set[bytes], last: int | None = None) -> bool:
    try:
        fd = os.open(f"/proc/{pid}/environ", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    found = _all_of(fd).split(b"\0")
    return not marks.isdisjoint(found) and (last is None or _attempt_in(found) <= last)


def _attempt_in(environment: Collection[bytes]) -> int:
    numbers = (entry.partition(b"=")[2] for entry in environment if entry.startswith(os.fsencode(f"{_ATTEMPT}=")))
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def _all_of(fd: int) -> bytes:
    parts = []
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except OSError:
        pass
    finally:
        os.close(fd)
    return b"".join(parts)


def sweep(folder: Path) -> int:
    """Kill what a dead worker of a job has left behind; returns how many processes that were."""
    return sweep_tagged(tags_of(folder))


def sweep_tagged(tags: Collection[str], last: int | None = None) -> int:
    """Kill the processes with one of these tags, but for those of attempts after `last`; returns how many they were."""
    swept = 0
    for _ in range(10):
        found = tagged_processes(tags, last)
        if not found:
            break
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                swept += 1
            except ProcessLookupError:
                pass
    return swept
