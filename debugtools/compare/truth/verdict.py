"""What the truths of all layers come to: whether the suspect is acceptable, in one sentence."""

import math
from collections import Counter

from msgspec import UNSET

from layerwise._tool.backends.tensors import is_floating
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.result import TruthResult
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair, RowSummary, Truth
from layerwise._tool.debugtools.compare.truth.figures import LIMIT, times

_WORDS = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "float64": "FP64", "tf32": "TF32", "int8": "INT8"}


class TruthOutcome:
    """Takes in rows as they come."""

    def __init__(self) -> None:
        self._layers = self._without = 0
        self._reasons: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._worst: LayerRow | None = None
        self._first: LayerRow | None = None
        self._reference: LayerRow | None = None
        self._grown: LayerRow | None = None
        self._pairs: set[Pair] = set()
        self._asked = False

    def add(self, row: LayerRow) -> None:
        """Take in a row, with a truth or without."""
        if row.truth is UNSET:
            return
        self._asked = True
        self._pairs.add(row.pair)
        if row.truth.suspect is None:
            if row.truth.why and is_floating(row.dtype[1]):
                self._without += 1
                self._reasons[row.truth.why] += 1
            return
        self._layers += 1
        self._kinds[row.truth.kind] += bool(row.truth.kind)
        if row.truth.suspect > LIMIT and (self._first is None or _place(row) < _place(self._first)):
            self._first = row
        if self._worst is None or row.truth.suspect > (_truth(self._worst).suspect or 0.0):
            self._worst = row
        grown = row.truth.accumulated or 0.0
        if grown > LIMIT and (self._grown is None or grown > (_truth(self._grown).accumulated or 0.0)):
            self._grown = row
        theirs = row.truth.reference or 0.0
        if self._reference is None or theirs > (_truth(self._reference).reference or 0.0):
            self._reference = row

    def result(self) -> TruthResult | None:
        """The result; None if nobody asked for the truth."""
        if not self._asked:
            return None
        worst = _truth(self._worst).suspect if self._worst else None
        theirs = _truth(self._reference).reference if self._reference else None
        acceptable = None if self._worst is None else self._first is None
        first = None if self._first is None else summary(self._first)
        return TruthResult(acceptable, self._text(), self._layers, self._without, first, worst, theirs)

    def _text(self) -> str:
        if self._worst is None:
            return f"No verdict: no layer has a truth{self._left()}."
        if self._first is None:
            worst = times(_truth(self._worst).suspect)
            head = f"Acceptable: no layer is off by more than {worst} times what {self._rounding()}"
        else:
            head = f"Not acceptable: {self._told(self._first)}"
            if self._worst is not self._first:
                head += f"; the worst is {self._label(self._worst)}, by {times(_truth(self._worst).suspect)} times"
        return f"{head}{self._others()}{self._left()}."

    def _rounding(self) -> str:
        kinds = [(_WORDS.get(kind, kind), count) for kind, count in self._kinds.most_common() if count]
        if len(kinds) == 1:
            return f"{kinds[0][0]} rounding explains"
        counts = ", ".join(f"{count} in {kind}" for kind, count in kinds)
        return f"the rounding of its type explains ({counts})" if kinds else "rounding explains"

    def _told(self, row: LayerRow) -> str:
        found = _truth(row)
        if found.suspect == math.inf and row.inf[0] > row.inf[1]:
            reach = f": {_WORDS.get(found.kind, found.kind)} does not reach that far" if found.kind else ""
            return f"{self._label(row)} is infinite where its own inputs give finite numbers{reach}"
        if found.suspect == math.inf:
            return f"{self._label(row)} gives values that its own inputs do not explain at all"
        text = (
            f"{self._label(row)} is off by {times(found.suspect)} times what {_kind(found)} explains, on its own inputs"
        )
        return text + (f"; the reference by {times(found.reference)} times" if found.reference is not None else "")

    def _others(self) -> str:
        """What is to be known of the reference, and of a suspect whose layers are all right."""
        row, grown, text = self._reference, self._grown, ""
        if row is not None and row is not self._first and (_truth(row).reference or 0.0) > LIMIT:
            text = f"; the reference itself is off by {times(_truth(row).reference)} times at {self._label(row)}"
        if grown is not None and self._first is None:
            text += (
                f"; yet the sides' difference grows to {times(_truth(grown).accumulated)} times what the rounding of "
            )
            text += f"all layers adds up to, at {self._label(grown)}"
        return text

    def _label(self, row: LayerRow) -> str:
        pair = f" (runner {row.pair[0]} against {row.pair[1]})" if len(self._pairs) > 1 else ""
        return f"#{row.i} {shown(row.op, 40)} {shown(row.node or row.tensor, 80)}{pair}"

    def _left(self) -> str:
        if not self._without:
            return ""
        why, count = self._reasons.most_common(1)[0]
        mostly = "" if count == self._without else f" ({count} of them)"
        return f"; no truth for {self._without} of {self._layers + self._without} tensors{mostly}: {shown(why, 160)}"


def _truth(row: LayerRow) -> Truth:
    return Truth() if row.truth is UNSET else row.truth


def _kind(found: Truth) -> str:
    return f"{_WORDS.get(found.kind, found.kind)} rounding" if found.kind else "rounding"


def _place(row: LayerRow) -> tuple[int, int]:
    return row.iteration, row.i


def summary(row: LayerRow) -> RowSummary:
    """What a result repeats of a row."""
    return RowSummary(*(getattr(row, name) for name in RowSummary.__struct_fields__))
