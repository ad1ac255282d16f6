"""A minimal signal: state announces a change, widgets listen."""

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
