"""What has grown since a baseline was made: pure functions over its layers and those of now."""

import math
from collections.abc import Container, Mapping, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from layerwise._tool.debugtools.baseline.cause import Since
from layerwise._tool.debugtools.baseline.measure import Key, Measured, times_of
from layerwise._tool.debugtools.baseline.pairing import Pairing
from layerwise._tool.debugtools.baseline.repetition import Repeated
from layerwise._tool.debugtools.baseline.rows import Baseline, Change, ChangeRow, KeptLayer

NEAR = 2.0
"""Up to how many times its limit a layer is repeated, to see whether it stays there."""
OUTPUT = "an output of the runs"
FAILING = frozenset({"grown", "follows", "fails"})


def changed(old: KeptLayer, new: KeptLayer) -> bool:
    """Whether what makes a layer from the tensors before it is not what it was, as far as that is known."""
    reference = old.reference != new.reference and bool(old.reference and new.reference)
    own = (old.operator, old.weights) != (new.operator, new.weights) and bool(old.operator and new.operator)
    return own or reference


def _times(old: KeptLayer, new: KeptLayer) -> float:
    return times_of(new.error, new.peak, new.broken, old)


def _fails(old: KeptLayer, new: KeptLayer) -> bool:
    """Whether an output that passed its tolerance fails it."""
    return bool(old.passed) and new.passed is False


class Growth:
    """The layers of now beside those of a baseline."""

    def __init__(self, then: Baseline, now: Sequence[Measured], since: Since) -> None:
        self.pairing = Pairing(then.layers, [each.layer for each in now])
        self._then, self._now, self._since = then, now, since
        self._old = {j: then.layers[i] for i, j in self.pairing.found.items()}
        self._times = {j: _times(old, now[j].layer) for j, old in self._old.items()}
        self._settled: dict[Key, Repeated] = {}

    def near(self) -> dict[Key, KeptLayer]:
        """What is worth repeating, by what it is now called; each as it was then.

        Layers that are beyond their limits, but not far, and outputs that fail their tolerances within them; not what
        comes behind a layer that is far beyond its own.
        """
        found: dict[Key, KeptLayer] = {}
        tainted: set[Key] = set()
        for j, each in enumerate(self._now):
            by = self._times.get(j, 0.0)
            if by > NEAR or self._behind(each, tainted):
                tainted.add(each.key)
            elif j in self._old and (by > 1 or _fails(self._old[j], each.layer)):
                found[each.key] = self._old[j]
        return found

    def _behind(self, each: Measured, keys: Container[Key]) -> bool:
        return any((each.layer.pair, name) in keys for name in each.fact.reads)

    def settle(self, found: Mapping[Key, Repeated]) -> None:
        """Take in what repetitions tell of layers."""
        self._settled.update(found)

    def rows(self) -> list[ChangeRow]:
        """All that is not as it was, in topological order."""
        before = self._changed_before()
        found = [(j, self._row(j, change, before.get(j, ""))) for j, change in self._changes().items()]
        found += [(j, self._alone(j)) for j in self.pairing.new]
        rows = [row for _, row in sorted(found, key=lambda item: item[0])]
        return [*rows, *(_lost(self._then.layers[i]) for i in self.pairing.lost)]

    def _changes(self) -> dict[int, Change]:
        found: dict[int, Change] = {}
        tainted: set[Key] = set()
        for j, each in enumerate(self._now):
            old = self._old.get(j)
            behind = self._behind(each, tainted)
            change = self._change(each, old, self._times[j]) if old is not None else None
            if change == "grown" and old is not None and behind and not changed(old, each.layer):
                change = "follows"
            if behind or change in ("grown", "follows"):
                tainted.add(each.key)
            if change is not None:
                found[j] = change
        return found

    def _changed_before(self) -> dict[int, str]:
        """Of layers the nearest one before that is new or made otherwise than it was, as far as graphs tell."""
        nearest: dict[Key, str] = {}
        found: dict[int, str] = {}
        for j, each in enumerate(self._now):
            before = [nearest[each.layer.pair, name] for name in each.fact.reads if (each.layer.pair, name) in nearest]
            if before:
                found[j] = nearest[each.key] = before[0]
            if j not in self._old or changed(self._old[j], each.layer):
                nearest[each.key] = each.layer.node or each.layer.layer
        return found

    def _change(self, each: Measured, old: KeptLayer, by: float) -> Change | None:
        repeated = self._settled.get(each.key)
        fails = _fails(old, each.layer)
        if by > 1 or fails:
            if repeated is None or repeated.finding == "regression":
                return "grown" if by > 1 else "fails"
            return "unsure" if repeated.finding == "unsure" else None
        less = old.error is not None and each.layer.error is not None and each.layer.limit < old.error
        return "less" if less and by <= 1 else None

    def _row(self, j: int, change: Change, before: str) -> ChangeRow:
        each, old = self._now[j], self._old[j]
        new, repeated = each.layer, self._settled.get(each.key)
        row = _bare(each, change)
        notes = [repeated.text] if repeated else []
        if change in ("grown", "follows") and _fails(old, new):
            notes.append("it fails its tolerance too")
        by = self._times[j]
        return replace(
            row, was=old.layer if old.layer != new.layer else UNSET, error_then=old.error, limit=old.limit,
            peak_then=old.peak, peak_limit=old.peak_limit, times=by if math.isfinite(by) else None,
            note="; ".join(notes),
            cause=self._since.cause(old, each.layer, before) if change in ("grown", "fails", "unsure") else "",
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


def _lost(old: KeptLayer) -> ChangeRow:
    return ChangeRow(
        change="lost", note=OUTPUT if old.passed is not None else "", layer=old.layer,
        pair=old.pair, op=old.op, node=old.node, error_then=old.error, limit=old.limit,
        peak_then=old.peak, peak_limit=old.peak_limit,
    )  # fmt: skip
