"""Running one cell: its job under this process, then, where sides differ, a locate job and a bundle.

What a killed predecessor left is taken up: jobs that have ended count, one that was lost gets another attempt.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.inline import see_through
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.cards import KILLED
from layerwise._tool.backends.jobs.processes.standby import Standby
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import settle_types
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.cluster.versions import own_versions, skew
from layerwise._tool.debugtools.compare.spec import CompareSpec, unsaved
from layerwise._tool.debugtools.matrix.outcome import (
    culprits_of,
    lost,
    receipt_of,
    refused,
    seconds_of,
    suspect_of,
    told,
)
from layerwise._tool.debugtools.matrix.repeating import repeated
from layerwise._tool.debugtools.matrix.rows import CRASHES, Receipt
from layerwise._tool.debugtools.matrix.spec import Order
from layerwise._tool.debugtools.matrix.store import CellStore, Record

_LOOK_AGAIN = 0.2
_TURN = threading.Lock()
"""Held by the cell of this process that does more than wait: what it reads first is safe in one thread alone."""


class _Lost(Exception):
    """A job of the cell was lost too often."""

    def __init__(self, view: JobView) -> None:
        super().__init__()
        self.view = view


def run_text(text: str) -> str:
    """Run the cell that a JSON text (an Order) describes; its Receipt as JSON. For workers of a cluster.

    Versions are looked at before all else: what another version has written may mean another thing.
    """
    head = msgspec.json.decode(text, type=_Head)
    differences = skew(head.versions, own_versions())
    if differences:
        return msgspec.json.encode(refused(head.key, differences)).decode()
    return msgspec.json.encode(run_cell(msgspec.json.decode(text, type=Order))).decode()


class _Head(msgspec.Struct):
    key: str
    versions: dict[str, str] = {}


def run_cell(order: Order) -> Receipt:
    """Run a cell, or what is left of it; its receipt, which is kept if the cell is finished with it.

    LayerwiseError where no job can be made.
    """
    if not Path(order.stop).parent.is_dir():
        return refused(order.key, [f"{order.workspace}, where jobs are, is not seen from here"])
    store = CellStore(Workspace(Path(order.workspace)))
    with store.held(order.key) as held:
        if not held:
            return Receipt(key=order.key, verdict="elsewhere")
        record = store.read(order.key)
        if order.again and record.again != order.again:
            record = Record(again=order.again)
        if record.receipt is not None and record.receipt.kept:
            return record.receipt
        with _TURN:
            return _Cell(order, store, record).run()


class _Cell:
    """A cell that this process holds."""

    def __init__(self, order: Order, store: CellStore, record: Record) -> None:
        self._order, self._store, self._record = order, store, record
        self._workspace = store.workspace
        self._pending = ""

    def run(self) -> Receipt:
        try:
            receipt = replace(self._all(), pending=self._pending)
        except _Lost as found:
            receipt = lost(self._order, found.view, self._record.losses)
        if receipt.kept:
            self._record.receipt = receipt
            self._keep()
        elif receipt.verdict == "refused":  # what its jobs have found is of other files
            self._record.jobs.clear()
            self._keep()
        return receipt

    def _all(self) -> Receipt:
        if self._stopped():
            return Receipt(key=self._order.key, verdict="cancelled", text="not begun")
        view = self._step("run", lambda: self._order.cell.job)
        receipt = receipt_of(self._order, view, own_versions())
        if receipt.verdict == "failed" and self._order.cell.repeat:
            found = repeated(self._order.cell.job, view, self._unless_stopped)
            kind = {"chance": "flaky", "unsure": "unsure"}.get(found.finding, "") if found is not None else ""
            receipt = replace(receipt, repeated=found, kind=kind)
        compared = (view.result or {}).get("n_compared", 1)
        locate = self._order.cell.locate
        if receipt.verdict != "failed" or locate is None or not compared:
            return replace(receipt, losses=self._record.losses)
        return replace(self._explained(receipt, view, locate), losses=self._record.losses)

    def _unless_stopped(self, step: str, spec: JobSpec) -> JobView | None:
        if self._stopped():
            self._pending = f"{step}: not begun"
            return None
        return self._follow(step, spec)

    def _follow(self, step: str, spec: JobSpec) -> JobView:
        """A step that follows a failure. One that ends by what another attempt may not meet is pending."""
        view = self._step(step, lambda: spec)
        if not _is_over(view):
            self._pending = f"{step}: {told(view)}"
        return view

    def _explained(self, receipt: Receipt, run: JobView, locate: JobSpec) -> Receipt:
        """The receipt with what locating finds, and the path of a bundle."""
        if self._stopped():
            return replace(receipt, verdict="cancelled")
        view = self._follow("locate", locate)
        if view.state == "cancelled":
            return replace(receipt, verdict="cancelled", text="cancelled while locating")
        seconds = receipt.seconds + seconds_of(view)
        suspect = suspect_of(view.result) if view.state == "done" else f"none: {told(view)}"
        receipt = replace(receipt, locate=view.id, suspect=suspect, seconds=seconds)
        nodes = culprits_of(view.result)
        if not self._order.cell.bundle or not nodes:
            return receipt
        bundle = self._unless_stopped("bundle", self._bundle(run, nodes))
        if bundle is None:
            return receipt
        path = str((bundle.result or {}).get("path") or "")
        return replace(receipt, bundle=path, seconds=receipt.seconds + seconds_of(bundle))

    def _bundle(self, run: JobView, nodes: list[int]) -> JobSpec:
        job = self._order.cell.job
        output = run.folder / "artifacts" / "bundle"
        compare = unsaved(msgspec.convert(job.params, CompareSpec))
        spec = BundleSpec(compare=compare, nodes=nodes, output=str(output))
        command = ["layerwise", "debug", "bundle", str(run.id), "-o", str(output), "--nodes", *map(str, nodes)]
        return replace(
            job, action="bundle", params=msgspec.to_builtins(spec), title=f"{job.title}: bundle", command=command
        )

    def _step(self, step: str, spec: Callable[[], JobSpec]) -> JobView:
        """The job of a step once it has ended, however often it has to be begun."""
        while True:
            view = self._known(step)
            if view is None:
                job = self._placed(spec())
                view = self._begin(step, lambda job=job: self._workspace.create(job))  # type: ignore[misc]
            elif _is_over(view):
                return view
            elif view.damage:
                del self._record.jobs[step]
                continue
            elif not view.final:  # somebody else has begun it again
                with _others_turn():
                    time.sleep(_LOOK_AGAIN)
                continue
            else:
                self._count(view)
                view = self._begin(step, lambda number=view.id: self._workspace.reopen(number))  # type: ignore[misc]
            if not _was_killed(view):
                return view

    def _known(self, step: str) -> JobView | None:
        job = self._record.jobs.get(step)
        try:
            return None if job is None else self._workspace.view(job)
        except UsageError:  # it was pruned
            return None

    def _count(self, view: JobView) -> None:
        """Count a job that was killed from outside, by whom nobody knows: it may be the cell's own doing after all."""
        if _was_killed(view):
            self._record.losses += 1
            self._keep()
            if self._record.losses >= self._order.losses:
                raise _Lost(view)

    def _begin(self, step: str, make: Callable[[], tuple[Path, int]]) -> JobView:
        """Make a job, note it, and see it through: whoever comes after this process finds it."""

        def made() -> tuple[Path, int]:
            folder, lock = make()
            try:
                self._record.jobs[step] = int(folder.name)
                self._keep()
            except BaseException:
                os.close(lock)
                raise
            return folder, lock

        with _others_turn(), _standby(self._workspace.jobs).one(more=self._order.more) as spare:
            return see_through(made, self._workspace, ACTIONS, spare=spare)

    def _placed(self, spec: JobSpec) -> JobSpec:
        """The job with a GPU of this machine, which the one that planned it may not have had."""
        needs = self._order.cell.gpu and not spec.gpus and bool(visible_gpus(os.environ))
        return replace(spec, gpus=1) if needs else spec

    def _keep(self) -> None:
        try:
            self._store.write(self._order.key, self._record)
        except OSError as error:
            raise LayerwiseError(f"{self._store.folder} cannot be written: {error.strerror}") from error

    def _stopped(self) -> bool:
        return os.path.lexists(self._order.stop)


@contextmanager
def _others_turn() -> Iterator[None]:
    """Inside, other cells of this process have their turn: this one waits for its job."""
    _TURN.release()
    try:
        yield
    finally:
        _TURN.acquire()


@cache
def _standby(jobs: Path) -> Standby:
    """Of this process, which runs many cells."""
    return Standby(ACTIONS, jobs)


def _was_killed(view: JobView) -> bool:
    """Whether the process of a job was killed from outside, with its supervisor or without."""
    return view.state == "lost" or (view.state == "failed" and (view.card or {}).get("summary") == KILLED)


def _is_over(view: JobView) -> bool:
    """Whether a job has come to an end that another attempt would come to as well."""
    crashed = view.state == "failed" and (view.card or {}).get("kind") in CRASHES
    return view.state == "done" or (crashed and not _was_killed(view))


settle_types()
