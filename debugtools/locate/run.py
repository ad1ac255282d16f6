"""Locating from beginning to end: both sides walked through together, rows, suspects, the result."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from backends.errors import UsageError
from backends.feeds import make_feeds
from debugtools.compare.comparing import Comparer
from debugtools.compare.memory import keep_for_reuse, keep_nothing_back, limits, peak, resident
from debugtools.compare.outcome import row_key
from debugtools.compare.places import Places
from debugtools.compare.setup import Setup
from debugtools.compare.sides import ModelSide, SavedSide, Side
from debugtools.compare.stream import SessionPool
from debugtools.locate.differences import Differences
from debugtools.locate.evidence import evidence
from debugtools.locate.grounds import Grounds
from debugtools.locate.reading import Reader
from debugtools.locate.spec import LocateSpec
from debugtools.locate.suspects import Suspects, suspect_row

if TYPE_CHECKING:
    from backends.jobs.context import JobContext

Feed = Mapping[str, NDArray[Any]]


class LocateRun:
    """Holds what lives as long as the job's work. A context manager: leaving it closes sessions."""

    def __init__(self, context: "JobContext", spec: LocateSpec, setup: Setup) -> None:
        self.context, self.spec, self.setup = context, spec, setup
        self.started = time.perf_counter()
        self.suspect, self.reference = two_sides(setup.sides)
        budget = spec.compare.memory_budget
        (keep_for_reuse if budget is None else keep_nothing_back)()
        keep = budget is None and setup.count() != 1
        self._pools = SessionPool(keep), SessionPool(keep)
        self._other = self._other_model()
        self._comparer = Comparer(spec.compare, setup.sides, Places(setup.model, True, self._other), lambda *_: None)
        self._done = {row_key(row) for row in context.previous_rows("layers")}
        self._grounds: Grounds | None = None
        self.suspects = Suspects()
        self.stopped = ""

    def _other_model(self) -> ModelSide | None:
        side = self.reference
        return side if isinstance(side, ModelSide) and side.model is not self.suspect.model else None

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        for pool in self._pools:
            self._stack.callback(pool.close)
        self._stack.callback(self.setup.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self) -> dict[str, Any]:
        """Run all iterations and return the job's result."""
        for number, feed in enumerate(self._feeds()):
            self._iteration(number, feed)
        return self._result()

    def _feeds(self) -> Iterator[Feed]:
        feeds = iter(make_feeds(self.spec.compare.feeds, self.suspect.model.inputs, self.context.warn))
        return islice(feeds, self.reference.iterations) if isinstance(self.reference, SavedSide) else feeds

    def _iteration(self, number: int, feed: Feed) -> None:
        feeds = self._fitted(feed)
        allowed = limits(self.spec.compare.memory_budget, resident())
        if self._grounds is None:
            self._grounds = Grounds(self.suspect, self.reference, feeds, allowed)
        grounds = self._grounds
        reader = Reader(number, self._comparer, self.suspect.model.cut, grounds.region, self._mode())
        with grounds.walk(number, feeds, self._pools, self.context.artifacts / "waiting") as walk:
            for done, met in enumerate(walk, 1):
                row, suspect = reader.read(met)
                if row_key(row) not in self._done:
                    self.context.row("layers", row)
                if suspect is not None:
                    self.suspects.add(suspect)
                self.context.progress(done, len(grounds.points), "tensors", met.name)
        self.stopped = self.stopped or walk.stopped
        for pool in self._pools:
            pool.forget()

    def _fitted(self, feed: Feed) -> tuple[Feed, Feed]:
        warn = self.context.warn
        theirs = self.reference.fit(feed, warn) if isinstance(self.reference, ModelSide) else {}
        return self.suspect.fit(feed, warn), theirs

    def _mode(self) -> str:
        if isinstance(self.reference, SavedSide):
            return "saved"
        return "executed" if self.suspect.observed.executed else "every"

    def _result(self) -> dict[str, Any]:
        differences = Differences(self.suspect, self._other) if self._other else None
        rows = []
        for suspect, outputs in self.suspects.ranked()[: self.spec.top]:
            lines = evidence(suspect, differences, self.stopped)
            rows.append(suspect_row(suspect, outputs, self.suspect.model.cut, lines))
            self.context.row("suspects", rows[-1])
        assert self._grounds is not None
        return {
            "passed": bool(rows), "suspects": rows, "n_suspects": len(self.suspects),
            "tensors": len(self._grounds.points), "stopped": self.stopped, "summary": self._summary(rows),
            "runners": [side.name for side in self.setup.sides], "seconds": time.perf_counter() - self.started,
            "peak_memory": peak(),
        }  # fmt: skip

    def _summary(self, rows: list[dict[str, Any]]) -> str:
        assert self._grounds is not None
        count = len(self._grounds.points)
        if not rows:
            return f"no suspect: on the reference's inputs all of {count} tensors are the reference's"
        first = rows[0]
        return f"{first['diagnosis']} at #{first['i']} {first['op']} {first['node']}: {first['evidence']}"


def two_sides(sides: list[Side]) -> tuple[ModelSide, Side]:
    """The suspect and the reference. UsageError if they are not two sides of which the first runs a model."""
    if len(sides) != 2:
        raise UsageError(
            f"locating takes two sides, a suspect and a reference; there are {len(sides)}: "
            "add --reference-model GOOD.onnx, --load-outputs golden.json or a second runner"
        )
    if not isinstance(sides[0], ModelSide):
        raise UsageError("the first side, the suspect, must run a model: give a runner such as --onnxrt")
    return sides[0], sides[1]
