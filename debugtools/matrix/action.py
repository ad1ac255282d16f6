"""The job action `matrix`: finds what is to be run, has it run, and writes the result file.

It runs nothing itself. Whoever runs a cell keeps what it came to (debugtools.matrix.store), so that this job may die at
any time: started again it takes up the finished cells and goes on.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.cluster.protocol import Runs
from layerwise._tool.backends.errors import writing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.jobs.workspace.leases import cpu_slots
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.cluster.versions import VERSIONS, agreed_versions
from layerwise._tool.debugtools.matrix.against import changes, read_result
from layerwise._tool.debugtools.matrix.conclusion import conclusion
from layerwise._tool.debugtools.matrix.flight import Flight
from layerwise._tool.debugtools.matrix.keys import Key, Keys
from layerwise._tool.debugtools.matrix.rows import CellRow, MatrixResult, Receipt, StartRow
from layerwise._tool.debugtools.matrix.spec import MatrixSpec, Order
from layerwise._tool.debugtools.matrix.store import CellStore

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

RESULT = "matrix.json"
_RUN = "layerwise._tool.debugtools.matrix.cell:run_text"


def matrix(context: "JobContext") -> MatrixResult:
    """Run the cells that `context.params` (a MatrixSpec) has and that are not finished.

    A row of table `cells` for each that has ended, one of `started` for each job. LayerwiseError for a cluster that
    cannot be used, and where versions differ.
    """
    spec = read_spec(context.params, MatrixSpec, "the matrix")
    context.drop_rows()
    before = read_result(Path(spec.against)) if spec.against else None
    context.artifacts.mkdir(0o700, parents=True, exist_ok=True)
    runs = open_runs(spec, context.artifacts, context.warn)
    try:
        result = _Matrix(context, spec, runs).run(before)
    except Exception:
        runs.close()
        raise
    runs.close()  # not where it is cancelled: there is little time, and all that it started is swept
    return result


def open_runs(spec: MatrixSpec, private: Path, tell: Callable[[str], None]) -> Runs:
    """Who runs the cells: threads of this process, or a cluster. private: a folder of the user's alone.

    LayerwiseError where it cannot be reached.
    """
    if not spec.cluster:
        from layerwise._tool.debugtools.matrix.local import LocalCells

        return LocalCells(spec.workers or len(cpu_slots()))
    from layerwise._tool.backends.cluster.dask import DaskRuns
    from layerwise._tool.backends.cluster.where import parse_where

    name = spec.cluster.partition(":")[2]
    where = parse_where(spec.cluster, spec.workers, {name: spec.profile}, len(cpu_slots()))
    return DaskRuns(where, _RUN, VERSIONS, private, tell)


class _Matrix:
    """One run of a matrix."""

    def __init__(self, context: "JobContext", spec: MatrixSpec, runs: Runs) -> None:
        self._context, self._spec, self._runs = context, spec, runs
        self._store = CellStore(Workspace(context.folder.parents[1]))
        self._started = time.time()
        self._rows: dict[int, CellRow] = {}
        self._run = 0
        self._stop = context.artifacts / "stop"
        self._stop.unlink(missing_ok=True)
        self._again = self._beginning() if spec.again else ""

    def run(self, before: MatrixResult | None) -> MatrixResult:
        versions = agreed_versions(self._runs)
        keys = self._keys(versions)
        waiting: dict[str, list[int]] = {}
        for number, key in enumerate(keys):
            known = self._store.read(key.key)
            receipt = known.receipt if known.again == self._again or not self._again else None
            if receipt is not None and receipt.kept:
                self._row(number, key, receipt, reused=True)
            else:
                waiting.setdefault(key.key, []).append(number)
        orders = [self._order(key, keys[numbers[0]], numbers[0], versions) for key, numbers in waiting.items()]
        flight = Flight(self._runs, self._store, self._begun(waiting))
        try:
            for receipt in flight.run(orders):
                for number in waiting[receipt.key]:
                    self._row(number, keys[number], receipt)
        except BaseException:  # a cancel too, which has two seconds
            self._stop.touch()
            flight.cancel()
            raise
        return self._result(before, versions)

    def _beginning(self) -> str:
        """What tells the cells that this job has run again from those of before; another attempt goes on with them."""
        path = self._context.artifacts / "again"
        if self._context.earlier.done or not path.is_file():
            atomic_write(path, f"{self._context.folder}#{self._context.attempt}")
        return path.read_text(encoding="utf-8")

    def _keys(self, versions: dict[str, str]) -> list[Key]:
        maker, found = Keys(versions), []
        for number, cell in enumerate(self._spec.cells):
            self._context.progress(number, len(self._spec.cells), "cells", f"reading {cell.model}")
            found.append(maker.key(cell))
        return found

    def _order(self, key: str, made: Key, number: int, versions: dict[str, str]) -> Order:
        return Order(
            key=key, cell=self._spec.cells[number], workspace=str(self._store.workspace.root), stop=str(self._stop),
            files=made.files, versions=versions, again=self._again, losses=self._spec.losses,
        )  # fmt: skip

    def _begun(self, waiting: dict[str, list[int]]) -> Callable[[str, int], None]:
        def begun(key: str, job: int) -> None:
            for number in waiting[key]:
                self._context.row("started", StartRow(number, job))

        return begun

    def _row(self, number: int, key: Key, receipt: Receipt, *, reused: bool = False) -> None:
        cell = self._spec.cells[number]
        row = CellRow(number=number, model=cell.model, side=cell.side, feed=cell.feed, action=cell.action,
                      receipt=receipt, reused=reused, parts=key.parts)  # fmt: skip
        self._rows[number] = row
        self._run += not reused
        self._context.row("cells", row)
        self._context.progress(len(self._rows), len(self._spec.cells), "cells", cell.model)

    def _result(self, before: MatrixResult | None, versions: dict[str, str]) -> MatrixResult:
        rows = [self._rows[number] for number in sorted(self._rows)]
        counts = dict(Counter(str(row.receipt.verdict) for row in rows))
        found = changes(before, rows, subset=self._spec.subset) if before is not None else []
        path = self._spec.output or str(self._context.artifacts / RESULT)
        result = MatrixResult(
            name=self._spec.name, file=self._spec.file, started=self._started, seconds=time.time() - self._started,
            passed=counts.get("passed", 0) == len(rows), counts=counts, run=self._run, reused=len(rows) - self._run,
            cells=rows, versions=versions, against=self._spec.against, changes=found, subset=self._spec.subset,
            conclusion=conclusion(rows, counts, found, self._spec.against), path=path,
        )  # fmt: skip
        self._write(result)
        return result

    def _write(self, result: MatrixResult) -> None:
        """The result file in the job's folder, where later runs look for it, and where the user wants it."""
        text = msgspec.json.format(msgspec.json.encode(result), indent=1)
        own = str(self._context.artifacts / RESULT)
        for path in dict.fromkeys((own, result.path)):
            with writing(shown(path)):
                atomic_write(path, text)
