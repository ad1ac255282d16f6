"""One inotify descriptor on an asyncio loop, shared by all who watch files there."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from layerwise._tool.backends.jobs.waiting.watch import CLOSE_WRITE, CREATE, DELETE, MODIFY, MOVED_FROM, MOVED_TO, Watch
from layerwise._tool.backends.older_python import timeout

_FILE = MODIFY | CLOSE_WRITE
FOLDER = CLOSE_WRITE | CREATE | DELETE | MOVED_FROM | MOVED_TO
_LOOK_AGAIN = 30.0
_POLL = 0.25


class Change:
    """Told when a watched file changes; `wait` also returns now and then for what no watch can tell."""

    def __init__(self, look_again: float) -> None:
        self._event = asyncio.Event()
        self._look_again = look_again
        self._unwatched = 0

    def set(self) -> None:
        self._event.set()

    @contextmanager
    def polling(self, unwatched: int) -> Iterator[None]:
        """While inside, `wait` returns often if that many paths, of which none is told of, are not 0."""
        self._unwatched += unwatched
        try:
            yield
        finally:
            self._unwatched -= unwatched

    async def wait(self) -> None:
        with suppress(TimeoutError):
            async with timeout(_POLL if self._unwatched else self._look_again):
                await self._event.wait()
        self._event.clear()


class Hub:
    """Starts watching when first asked to, on the loop that runs then."""

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._told: dict[int, list[Change]] = {}

    @contextmanager
    def watching(self, paths: Iterable[Path], change: Change | None = None) -> Iterator[Change]:
        """While inside, `change` (a new one by default) is told of changes of files and in folders."""
        watch = self._start()
        change = change or Change(_LOOK_AGAIN)
        numbers = [watch.add(path, FOLDER if path.is_dir() else _FILE) for path in paths]
        for number in numbers:
            self._told.setdefault(number, []).append(change)
        try:
            with change.polling(numbers.count(-1)):
                yield change
        finally:
            for number in numbers:
                self._forget(number, change)

    def close(self) -> None:
        if self._watch is not None and self._watch.fd >= 0:
            asyncio.get_running_loop().remove_reader(self._watch.fd)
            self._watch.close()
        self._watch = None

    def _start(self) -> Watch:
        if self._watch is None:
            self._watch = Watch()
            if self._watch.fd >= 0:
                asyncio.get_running_loop().add_reader(self._watch.fd, self._tell)
        return self._watch

    def _tell(self) -> None:
        if self._watch is None:
            return
        for number in self._watch.drain():
            for change in self._told.get(number, []):
                change.set()

    def _forget(self, number: int, change: Change) -> None:
        told = self._told.get(number, [])
        if change in told:
            told.remove(change)
        if not told:
            self._told.pop(number, None)
            if self._watch is not None:
                self._watch.remove(number)
