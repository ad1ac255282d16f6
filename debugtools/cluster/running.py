"""Running a command for somebody on another machine: it ends with this process, with who asked for it, and on time."""

import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import refusal
from layerwise._tool.backends.filesystem.temporary import environment_of_user
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.cluster.asked import AskedCommand, Exited
from layerwise._tool.debugtools.cluster.versions import own_versions, skew

_LOOK = 0.1  # seconds
_ASKER = 1.0
_GUARD = 'trap "" TERM INT HUP; read _; kill -9 -"$1"'


class _Head(msgspec.Struct):
    versions: dict[str, str] = {}


def run_text(text: str) -> str:
    """Run the command that a JSON text (an AskedCommand) describes; how it Exited, as JSON.

    Versions are looked at before all else: what another version has written may mean another thing.
    """
    differences = skew(msgspec.json.decode(text, type=_Head).versions, own_versions())
    if differences:
        return _told(Exited(refused=f"{platform.node()}: {'; '.join(differences)}"))
    return _told(run_command(msgspec.json.decode(text, type=AskedCommand)))


def _told(exited: Exited) -> str:
    return msgspec.json.encode(exited).decode()


def run_command(asked: AskedCommand) -> Exited:
    """Run it and wait for its end."""
    folder = Path(asked.folder)
    if not folder.is_dir():
        return Exited(refused=f"{platform.node()}: {shown(asked.folder, 300)} is not seen from here")
    try:
        with (folder.parent / "stdout.txt").open("wb") as out, (folder.parent / "stderr.txt").open("wb") as err:
            process = subprocess.Popen(
                asked.command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, umask=asked.umask,
                env=environment_of_user() | asked.environment, start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        return Exited(refused=f"{platform.node()}: {shown(asked.command[0], 120)}: {refusal(error) or error.strerror}")
    with _guarded(process.pid):
        return Exited(_code(process, asked))


def _code(process: "subprocess.Popen[bytes]", asked: AskedCommand) -> int | None:
    """The exit code; None where it was killed: too late, or nobody waits for it."""
    started = looked = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK)
        now = time.monotonic()
        over = os.path.lexists(asked.stop) or (asked.timeout is not None and now - started > asked.timeout)
        if now - looked > _ASKER:
            looked, over = now, over or _is_free(Path(asked.asker))
        if over:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _is_free(lock: Path) -> bool:
    """Whether nobody holds a lock any more; also where its file is gone."""
    try:
        fd = locks.probe(lock) if lock.exists() else -1
    except OSError:
        return True
    if fd is not None and fd >= 0:
        os.close(fd)
    return fd is not None


@contextmanager
def _guarded(group: int) -> Iterator[None]:
    """Inside, a process group is killed when this process is: a worker that is lost leaves nothing running."""
    read_end, alive = os.pipe()
    try:
        guard = subprocess.Popen(["/bin/sh", "-c", _GUARD, "sh", str(group)], stdin=read_end, start_new_session=True)
    finally:
        os.close(read_end)
    try:
        yield
    finally:
        guard.kill()
        guard.wait()
        os.close(alive)
