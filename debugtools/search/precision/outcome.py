"""The result of a precision search, in numbers and in words."""

import math
import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.loop import SearchLoop
from layerwise._tool.debugtools.search.driver.replay import Replay
from layerwise._tool.debugtools.search.judges.protocol import Judgement
from layerwise._tool.debugtools.search.precision.engines import words
from layerwise._tool.debugtools.search.precision.handler import Best
from layerwise._tool.debugtools.search.precision.setup import PrecisionSetup
from layerwise._tool.debugtools.search.rows import (
    FileVerdict,
    KeptNodes,
    Node,
    Point,
    PrecisionSearchResult,
    VerdictRow,
)
from layerwise._tool.debugtools.search.strategies.precision import PrecisionResult
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.surgery.model.structure import node_label


def frontier(rows: Iterable[VerdictRow], total: int) -> list[Point]:
    """The verdict rows that no other beats in both, the most low nodes first.

    total: nodes that can be low. Errors of a point are None where values were not finite.
    """
    points = [_point(row, total) for row in rows if row.measured.tensor]
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.low, _error(point))):
        if not chosen or (_error(point) < _error(chosen[-1]) and point.low < chosen[-1].low):
            chosen.append(point)
    return chosen


def _point(row: VerdictRow, total: int) -> Point:
    kept, found = row.nodes or 0, row.measured
    return Point(total - kept, kept, _finite(found.rel_l2), _finite(found.max_abs), row.verdict)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _error(point: Point) -> float:
    return math.inf if point.rel_l2 is None else point.rel_l2


class PrecisionOutcome:
    """by: who judges."""

    def __init__(self, setup: PrecisionSetup, by: str, started: float) -> None:
        self._setup, self._by, self._started = setup, by, started
        self._low = setup.spec.low

    def fails_in_fp32(self, full: Judgement) -> PrecisionSearchResult:
        """There is nothing to search for."""
        why = full.note or "an output differs by more than the tolerance"
        text = f"The model fails in FP32 already, so that no choice of precision can pass: {why}."
        if full.verdict is Verdict.SKIP:
            text = f"Whether the model passes in FP32 cannot be told: {why}."
        return self._result([], full, None, text)

    def result(
        self, told: PrecisionResult, full: Judgement | None, verified: Judgement | None, best: Best, loop: SearchLoop,
        history: VerdictRows, replay: Replay,
    ) -> PrecisionSearchResult:  # fmt: skip
        """What the search has come to; verified: the verdict on it outside the search."""
        if told.kept is None or verified is None:
            text = f"No set of nodes was found that lets the model pass with the others in {self._low}."
            found: list[KeptNodes] = []
        else:
            found = [self._found(told, verified, best)]
            text = self._text(told, verified)
        result = self._result(found, full, verified, text)
        total = sum(map(len, self._setup.choices.positions))
        all_low = next((row.verdict for row in history.rows if not row.phase and not row.nodes), None)
        return replace(
            result, frontier=frontier(history.rows, total), all_low=all_low, lowerable=total, checks=loop.checks,
            cached=loop.cached, replay=str(replay.path) if replay.path else None,
        )  # fmt: skip

    def _result(
        self, found: list[KeptNodes], full: Judgement | None, verified: Judgement | None, text: str
    ) -> PrecisionSearchResult:
        good = verified is not None and verified.verdict is Verdict.GOOD
        return PrecisionSearchResult(
            passed=bool(found) and good, search="precision", by=self._by, found=found, low=self._low,
            original=full.verdict if full else None, verified=good, summary=text, emulated=self._setup.emulate,
            seconds=time.perf_counter() - self._started,
        )  # fmt: skip

    def _found(self, told: PrecisionResult, verified: Judgement, best: Best) -> KeptNodes:
        assert told.kept is not None
        cut = self._setup.suspect.model.cut
        nodes = [
            Node(i, node_label(cut.nodes[i]), cut.nodes[i].op_type, list(cut.nodes[i].output))
            for i in self._setup.choices.nodes(told.kept)
        ]
        return KeptNodes(
            nodes=nodes, path=str(best.path), minimal=told.minimal, measured=verified.measured, note=verified.note,
            verdict=verified.verdict, file=self._file(best), build=self._build(told.kept),
        )  # fmt: skip

    def _build(self, kept: Sequence[int]) -> list[str] | None:
        """The options that build such an engine of the model as it is; None where no engine is built."""
        if self._setup.suspect.spec.kind != "trt":
            return None
        return words(self._low, [self._setup.choices.items[item] for item in kept])

    def _file(self, best: Best) -> FileVerdict | None:
        """How the file itself fares on the runner; None where a person or a command judges."""
        if self._by != "comparison":
            return None
        found = self._setup.machine.judge_file(best.path)
        return FileVerdict(found.verdict, found.measured, found.note)

    def _text(self, told: PrecisionResult, verified: Judgement) -> str:
        choices = self._setup.choices
        count, total = len(choices.nodes(told.kept or ())), sum(map(len, choices.positions))
        if not told.kept:
            text = f"The model passes with all {total} nodes in {self._low}: nothing needs to stay in FP32."
        else:
            names = ", ".join(shown(choices.items[item], 80) for item in told.kept[:5])
            more = f" and {len(told.kept) - 5} more" if len(told.kept) > 5 else ""
            kind = "not one of them can be left out" if told.minimal else "fewer may do"
            text = f"{count} of {total} nodes must stay in FP32 ({kind}): {names}{more}."
        if verified.verdict is not Verdict.GOOD:
            text += f" Tried once more, it did not pass: {verified.note or 'its outputs vary from run to run'}."
        return text
