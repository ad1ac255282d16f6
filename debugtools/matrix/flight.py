"""The cells that are out: as many as can be run at a time, until all have ended."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.cluster.protocol import Ended, Runs
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.client import send
from layerwise._tool.debugtools.matrix.rows import Receipt
from layerwise._tool.debugtools.matrix.spec import Order
from layerwise._tool.debugtools.matrix.store import CellStore

_TICK = 0.25  # seconds
_ELSEWHERE = 0.5
_GRACE = 1.5


class Flight:
    """Sends orders to `runs`. begun: told the key and the job of each cell whose job has begun."""

    def __init__(self, runs: Runs, store: CellStore, begun: Callable[[str, int], None]) -> None:
        self._runs, self._store, self._begun = runs, store, begun
        self._out: dict[str, Order] = {}
        self._elsewhere: dict[str, tuple[Order, float]] = {}
        self._told: set[str] = set()

    def run(self, orders: Sequence[Order]) -> Iterator[Receipt]:
        """Run all of them; a receipt for each as it ends. LayerwiseError for one that is refused for its versions."""
        waiting = deque(orders)
        while waiting or self._out or self._elsewhere:
            self._send(waiting)
            ended = self._runs.wait(_TICK)
            while ended is not None:
                yield from self._take(ended, waiting)
                ended = self._runs.wait(0.0)
            yield from self._look_elsewhere(waiting)
            self._tell_begun()

    def cancel(self) -> None:
        """Have the jobs of cells that are out end, and wait for that as long as there is time."""
        deadline = time.monotonic() + _GRACE
        asked: set[int] = set()
        while self._out and time.monotonic() < deadline:
            for key in self._out:
                for job in self._store.read(key).jobs.values():
                    if job not in asked and self._cancelled(job):
                        asked.add(job)
            ended = self._runs.wait(0.05)
            if ended is not None:
                self._out.pop(ended.name, None)

    def _cancelled(self, job: int) -> bool:
        """Ask a job to end, if it is alive; the supervisor that sees it through does the rest."""
        try:
            view = self._store.workspace.view(job)
        except UsageError:
            return False
        if view.final:
            return False
        with suppress(LayerwiseError):
            send(view.folder, {"type": "cancel", "attempt": view.attempt})
        return True

    def _send(self, waiting: deque[Order]) -> None:
        """Send as many as there is room for, those first that wait longest; GPUs have room of their own."""
        kept: list[Order] = []
        while waiting:
            order = waiting.popleft()
            gpu = order.cell.gpu
            alike = sum(out.cell.gpu for out in self._out.values()) if gpu else 0
            if len(self._out) >= self._runs.slots(False):
                kept.append(order)
                break
            if gpu and alike >= self._runs.slots(True):
                kept.append(order)
                continue
            self._out[order.key] = order
            text = msgspec.json.encode(replace(order, more=bool(waiting or kept)))
            self._runs.start(order.key, text.decode(), gpu)
        waiting.extendleft(reversed(kept))

    def _take(self, ended: Ended, waiting: deque[Order]) -> Iterator[Receipt]:
        order = self._out.pop(ended.name, None)
        if order is None:
            return
        self._told.discard(order.key)
        if ended.text is None:
            if not ended.lost:
                raise LayerwiseError(f"a cell could not be run: {ended.error}")
            known = self._store.read(order.key)
            if known.receipt is not None and known.receipt.kept and known.again == order.again:
                yield known.receipt
            else:
                waiting.append(order)
            return
        receipt = msgspec.json.decode(ended.text, type=Receipt)
        if receipt.verdict == "elsewhere":
            self._elsewhere[order.key] = (order, time.monotonic())
        elif receipt.kind == "versions":
            raise LayerwiseError(f"a worker cannot run cells of this command: {receipt.text}")
        else:
            yield receipt

    def _look_elsewhere(self, waiting: deque[Order]) -> Iterator[Receipt]:
        """Cells that another process runs: what they came to, or, if that process is gone, once more."""
        now = time.monotonic()
        for key, (order, looked) in list(self._elsewhere.items()):
            if now - looked < _ELSEWHERE:
                continue
            receipt = self._store.read(key).receipt
            if receipt is not None and receipt.kept:
                del self._elsewhere[key]
                yield receipt
            elif not self._store.is_held(key):
                del self._elsewhere[key]
                waiting.append(order)
            else:
                self._elsewhere[key] = (order, now)

    def _tell_begun(self) -> None:
        for key in [*self._out, *self._elsewhere]:
            if key not in self._told:
                job = self._store.read(key).jobs.get("run")
                if job is not None:
                    self._told.add(key)
                    self._begun(key, job)
