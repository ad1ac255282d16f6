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


class Owed:
    """What is put off for a moment because it follows the cursor or the text typed, and must be done before a key that
    acts on it.
    """

    def __init__(self) -> None:
        self._due: dict[Coalesce, None] = {}

    def add(self, work: "Coalesce") -> None:
        self._due[work] = None

    def remove(self, work: "Coalesce") -> None:
        self._due.pop(work, None)

    def flush(self) -> bool:
        """Do all of it now; whether there was any."""
        due = list(self._due)
        for work in due:
            work.flush()
        return bool(due)


class Coalesce:
    """Calls `work` soon after `touch`, at most once in `seconds`; costs nothing while nothing changes.

    owed: told while it is due. afresh: each touch puts it off again.
    """

    def __init__(
        self, work: Callable[[], object], seconds: float = 0.25, owed: Owed | None = None, *, afresh: bool = False
    ) -> None:
        self._work = work
        self._owed, self._afresh = owed, afresh
        self._seconds = seconds
        self._last = 0.0
        self._due: asyncio.TimerHandle | None = None

    def touch(self) -> None:
        """Something changed."""
        if self._afresh:
            self.cancel()
        if self._due is None:
            loop = asyncio.get_running_loop()
            wait = self._seconds if self._afresh else max(0.0, self._last + self._seconds - loop.time())
            self._due = loop.call_later(wait, self._run)
            if self._owed is not None:
                self._owed.add(self)

    def flush(self) -> None:
        """Do now what is due."""
        if self._due is not None:
            self._due.cancel()
            self._run()

    def cancel(self) -> None:
        """Forget what is due."""
        if self._due is not None:
            self._due.cancel()
            self._no_longer_due()

    def _no_longer_due(self) -> None:
        self._due = None
        if self._owed is not None:
            self._owed.remove(self)

    def _run(self) -> None:
        self._no_longer_due()
        self._last = asyncio.get_running_loop().time()
        self._work()
