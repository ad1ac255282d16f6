"""Files that change wake who watches them, also where the system has no watch to give."""

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


def test_a_file_that_is_made_later_is_noticed(tmp_path: Path) -> None:
    assert asyncio.run(_told_of(tmp_path / "not yet")) < 5


def test_without_descriptors_it_is_looked_for(tmp_path: Path) -> None:
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


def test_once_nothing_is_unwatched_any_more_it_sleeps_again(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def rest() -> bool:
        hub = Hub()
        with hub.watching([tmp_path / "file"]) as change:
            with hub.watching([tmp_path / "not yet"], change):
                await asyncio.wait_for(change.wait(), 5)
            try:
                await asyncio.wait_for(change.wait(), 1)
            except TimeoutError:
                return True
            finally:
                hub.close()
        return False

    assert asyncio.run(rest())
