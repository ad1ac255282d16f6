"""File changes wake their watchers, also where the system's file watches are unavailable."""

import asyncio
import resource
import time
from pathlib import Path

from layerwise._tool.backends.jobs.waiting.hub import Hub


async def _told_of(path: Path) -> float:
    """Seconds until a watcher of `path` is told, or looks again by itself, after it was written."""
    hub = Hub()
    with hub.watching([path]) as change:
        path.write_text("more")
        since = time.monotonic()
        await change.wait()
    hub.close()
    return time.monotonic() - since


def test_a_file_created_later_is_noticed(tmp_path: Path) -> None:
    assert asyncio.run(_told_of(tmp_path / "not yet")) < 5


def test_without_descriptors_files_are_polled(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def starved() -> float:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        hub = Hub()
        with hub.watching([tmp_path / "file"]) as change:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            (tmp_path / "file").write_text("more")
            since = time.monotonic()
            await change.wait()
        hub.close()
        return time.monotonic() - since

    assert asyncio.run(starved()) < 5


def test_polling_stops_once_everything_is_watched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def rest() -> bool:
        hub = Hub()
        with hub.watching([tmp_path / "file"]) as change:
            with hub.watching([tmp_path / "not yet"], change):
                await asyncio.wait_for(change.wait(), 5)
            try:
                await asyncio.wait_for(change.wait(), 1)
            except asyncio.TimeoutError:
                return True
            finally:
                hub.close()
        return False

    assert asyncio.run(rest())
