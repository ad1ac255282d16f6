"""How state announces a change: a minimal signal, and many small changes as few repaints."""

import asyncio
from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Callbacks to run, in order of subscription, when something changed."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[P, object]] = []

    def subscribe(self, callback: Callable[P, object]) -> Callable[[], None]:
        """Call `callback` at every `emit`; the returned function ends that."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for callback in tuple(self._callbacks):
            callback(*args, **kwargs)


class Coalesce:
    """Calls `work` soon after `touch`, at most once in `seconds`; costs nothing while nothing changes."""

    def __init__(self, work: Callable[[], object], seconds: float = 0.25) -> None:
        self._work = work
        self._seconds = seconds
        self._last = 0.0
        self._due: asyncio.TimerHandle | None = None

    def touch(self) -> None:
        """Something changed."""
        if self._due is None:
            loop = asyncio.get_running_loop()
            wait = max(0.0, self._last + self._seconds - loop.time())
            self._due = loop.call_later(wait, self._run)

    def flush(self) -> None:
        """Do now what is due."""
        if self._due is not None:
            self._due.cancel()
            self._run()

    def cancel(self) -> None:
        """Forget what is due."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _run(self) -> None:
        self._due = None
        self._last = asyncio.get_running_loop().time()
        self._work()
