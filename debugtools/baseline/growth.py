"""What has grown since a baseline was made: pure functions over its layers and those of now."""

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from layerwise._tool.debugtools.baseline.cause import Since
from layerwise._tool.debugtools.baseline.measure import Key, Measured
from layerwise._tool.debugtools.baseline.pairing import Pairing
from layerwise._tool.debugtools.baseline.repetition import Repeated
from layerwise._tool.debugtools.baseline.rows import Baseline, Change, ChangeRow, Layer

NEAR = 2.0
"""Up to how many times its limit a layer is repeated, to see whether it stays there."""
FAILING = frozenset({"grown", "follows", "fails"})


def times(old: Layer, new: Layer) -> float:
    """How many times its limit the error of a layer, or of its worst element, is; inf if it is broken."""
    if new.broken > old.broken or (new.error is None and old.error is not None):
        return math.inf
    found = [_over(new.error, old.limit), _over(new.peak, old.peak_limit)]
    return max(found)


def _over(value: float | None, limit: float) -> float:
    if not value:
        return 0.0
    return value / limit if limit else math.inf


def changed(old: Layer, new: Layer) -> bool:
    """Whether what makes a layer from the tensors before it is not what it was, as far as that is known."""
    reference = old.reference != new.reference and bool(old.reference and new.reference)
    own = (old.operator, old.weights) != (new.operator, new.weights) and bool(old.operator and new.operator)
    return own or reference


class Growth:
    """The layers of now beside those of a baseline."""

    def __init__(self, then: Baseline, now: Sequence[Measured], since: Since) -> None:
        self.pairing = Pairing(then.layers, [each.layer for each in now])
        self._then, self._now, self._since = then, now, since
        self._old = {j: then.layers[i] for i, j in self.pairing.found.items()}
        self._times = {j: times(old, now[j].layer) for j, old in self._old.items()}
        self._settled: dict[Key, Repeated] = {}

    def near(self) -> dict[Key, Layer]:
        """The layers that are beyond their limits, but not far, by what they are now called; each as it was then."""
        return {self._now[j].key: self._old[j] for j, by in self._times.items() if 1 < by <= NEAR}

    def settle(self, found: Mapping[Key, Repeated]) -> None:
        """Take in what repetitions tell of layers."""
        self._settled.update(found)

    def rows(self) -> list[ChangeRow]:
        """All that is not as it was, in topological order."""
        changes = self._changes()
        grown = {self._now[j].key for j, change in changes.items() if change in ("grown", "follows")}
        found = [(j, self._row(j, change, grown)) for j, change in changes.items()]
        found += [(j, self._alone(j)) for j in self.pairing.new]
        rows = [row for _, row in sorted(found, key=lambda item: item[0])]
        return [*rows, *(_lost(self._then.layers[i]) for i in self.pairing.lost)]

    def _changes(self) -> dict[int, Change]:
        found: dict[int, Change] = {}
        tainted: set[Key] = set()
        for j, each in enumerate(self._now):
            old = self._old.get(j)
            behind = any((each.layer.pair, name) in tainted for name in each.fact.reads)
            change = self._change(each, old, self._times[j]) if old is not None else None
            if change == "grown" and old is not None and behind and not changed(old, each.layer):
                change = "follows"
            if behind or change in ("grown", "follows"):
                tainted.add(each.key)
            if change is not None:
                found[j] = change
        return found

    def _change(self, each: Measured, old: Layer, by: float) -> Change | None:
        repeated = self._settled.get(each.key)
        if by > 1:
            if repeated is None or repeated.finding == "regression":
                return "grown"
            if repeated.finding == "unsure":
                return "unsure"
        if old.passed and each.layer.passed is False:
            return "fails"
        less = old.error is not None and each.layer.error is not None and each.layer.limit < old.error
        return "less" if less and by <= 1 else None

    def _row(self, j: int, change: Change, grown: set[Key]) -> ChangeRow:
        each, old = self._now[j], self._old[j]
        new, repeated = each.layer, self._settled.get(each.key)
        row = _bare(each, change)
        notes = [repeated.text] if repeated else []
        if change in ("grown", "follows") and old.passed and new.passed is False:
            notes.append("it fails its tolerance too")
        behind = [name for name in each.fact.reads if (new.pair, name) in grown]
        by = self._times[j]
        return replace(
            row, was=old.layer if old.layer != new.layer else UNSET, error_then=old.error, limit=old.limit,
            peak_then=old.peak, peak_limit=old.peak_limit, times=by if math.isfinite(by) else None,
            note="; ".join(notes),
            cause=self._since.cause(old, each, behind) if change in ("grown", "fails", "unsure") else "",
            confidence=repeated.confidence if repeated else UNSET,
        )  # fmt: skip

    def _alone(self, j: int) -> ChangeRow:
        return _bare(self._now[j], "new")


def _bare(each: Measured, change: Change) -> ChangeRow:
    new, row = each.layer, each.row
    return ChangeRow(
        change=change, i=row.i, layer=new.layer, pair=new.pair, op=new.op, node=new.node, error=new.error,
        peak=new.peak, module=row.module, source=row.source,
    )  # fmt: skip


def _lost(old: Layer) -> ChangeRow:
    return ChangeRow(
        change="lost", layer=old.layer, pair=old.pair, op=old.op, node=old.node, error_then=old.error, limit=old.limit,
        peak_then=old.peak, peak_limit=old.peak_limit,
    )  # fmt: skip
