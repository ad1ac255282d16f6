"""Running the engines ahead of the comparing, in a thread: neither waits for the other."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Condition, Thread
from typing import Generic, TypeVar

from layerwise._tool.backends.arrays import Array

Pair = tuple[tuple[int, int], str, Array, Array]
Item = TypeVar("Item")
_SHOWN = 64  # items at a time


def pair_size(item: Pair) -> int:
    """Bytes of a pair of tensors."""
    return item[2].nbytes + item[3].nbytes


def segment_size(made: Mapping[str, Array]) -> int:
    """Bytes of the tensors of a segment."""
    return sum(array.nbytes for array in made.values())


class Turns:
    """Has the steps of one thread wait while another needs all processors: a run that is timed, for instance."""

    def __init__(self) -> None:
        self._change = Condition()
        self._stepping = self._alone = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step of the thread that waits."""
        with self._change:
            self._change.wait_for(lambda: not self._alone)
            self._stepping = True
        try:
            yield
        finally:
            with self._change:
                self._stepping = False
                self._change.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """What no step runs beside; it begins when the step that has begun is done."""
        with self._change:
            self._alone = True
            self._change.wait_for(lambda: not self._stepping)
        try:
            yield
        finally:
            with self._change:
                self._alone = False
                self._change.notify_all()


class Ahead(Generic[Item]):
    """Iterates over `items`, made in a thread of its own, of which at most `limit` bytes (or one) wait at a time.

    size: bytes of an item. look: is shown items that wait, some at a time, before the first of them is given. Errors of
    `items` come out of the iteration, in their place. Leaving the context stops the thread: `items` is closed there, at
    its next item.
    """

    def __init__(
        self,
        items: Iterator[Item],
        limit: int,
        size: Callable[[Item], int],
        look: Callable[[Sequence[Item]], None] = lambda _: None,
    ) -> None:
        self._items, self._limit, self._size, self._look = items, limit, size, look
        self._waiting: deque[Item] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._over = self._stopped = False
        self._change = Condition()
        self._thread = Thread(target=self._work, name="ahead", daemon=True)

    def start(self) -> None:
        """Begin before the items are wanted."""
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether `items` has ended in an error by now."""
        return self._error is not None

    def until(self, over: Callable[[], bool], stays: Callable[[Item], bool]) -> Iterator[Item]:
        """Give items until `over` (call `wake` when that changes), or the next one `stays`; none is shown to `look`."""
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._over or over())
                if over() or not self._waiting or stays(self._waiting[0]):
                    return
            yield self._next()

    def wake(self) -> None:
        """Have `until` ask again whether it is over."""
        with self._change:
            self._change.notify_all()

    def __enter__(self) -> Iterator[Item]:
        if self._thread.ident is None:
            self.start()
        return self._given()

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._stopped = True
            self._waiting.clear()
            self._change.notify_all()
        self._thread.join()

    def _given(self) -> Iterator[Item]:
        shown = 0
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._over)
                if not self._waiting:
                    break
                coming = list(islice(self._waiting, _SHOWN)) if not shown else []
            if coming:
                self._look(coming)
                shown = len(coming)
            shown -= 1
            yield self._next()
        if self._error is not None:
            raise self._error

    def _next(self) -> Item:
        with self._change:
            item = self._waiting.popleft()
            self._bytes -= self._size(item)
            self._change.notify_all()
        return item

    def _work(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as error:  # it is raised where the items are used
            self._error = error
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
            with self._change:
                self._over = True
                self._change.notify_all()

    def _put(self, item: Item) -> bool:
        size = self._size(item)
        with self._change:
            self._change.wait_for(lambda: self._stopped or not self._waiting or self._bytes + size <= self._limit)
            self._waiting.append(item)
            self._bytes += size
            self._change.notify_all()
            return not self._stopped
