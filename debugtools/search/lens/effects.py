"""Each candidate by itself: what its own output is off by, what reaches the outputs, and where that comes from."""

import math
import time
from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.search.lens.chain import Setting, Tensors
from layerwise._tool.debugtools.search.lens.errors import Errors, finite
from layerwise._tool.debugtools.search.lens.lens import Lens, decibels
from layerwise._tool.debugtools.search.lens.rows import Channel, EffectRow
from layerwise._tool.surgery.precision.plan import EXACT
from layerwise._tool.surgery.quantise.candidates import Candidate
from layerwise._tool.surgery.quantise.formats import MINI, Format
from layerwise._tool.surgery.quantise.numeric import Scale, fake

_CHANNELS = 3
_PARTS_KEPT = 3  # of the chain, whose tensors are at hand: of those that candidates measured at once lie in


class Effects:
    """Measures candidates, in any threads. In topological order what a part makes is computed once.

    split: weight and activation one by one too.
    """

    def __init__(self, lens: Lens, *, split: bool) -> None:
        self._lens, self._split = lens, split
        self._parts: dict[int, list[Tensors]] = {}
        self._looking = Lock()

    def row(self, one: Candidate) -> EffectRow:
        """What one candidate does."""
        started = time.perf_counter()
        lens = self._lens
        inputs = self._inputs(one)
        names = [name for name in lens.model.cut.nodes[one.i].output if name]
        own, errors, channels = Errors(), Errors(), _Channels(one.op)
        for known, made, reference in zip(
            inputs, lens.outputs({one.i: lens.setting(one)}, names), lens.reference, strict=True
        ):
            mine = {name: known[name] for name in names if name in known}
            own.add(made, mine)
            channels.add(made[names[0]], known[names[0]])
            errors.add({name: made[name] for name in reference if name in made}, reference)
        row = EffectRow(
            i=one.i, node=one.label, op=one.op, outputs=names, own=finite(own.worst), effect=finite(errors.worst),
            effects=errors.rows(), channels=channels.worst(), nbytes=saved_bytes(lens, one),
            flops=self._flops(one, inputs[0]),
        )  # fmt: skip
        if self._split and one.weights and (one.activations or one.outputs):
            row.weight = self._alone(one, lens.setting(one, activations=False))
            row.activation = self._alone(one, lens.setting(one, weights=False))
        if one.outputs:
            row.fed_by = self._fed_by(one)
            stored = lens.outputs({one.i: lens.setting(one, activations=False, ends=True)})
            row.stored = lens.errors_of(stored).rows()
        self._operands(one, row, inputs)
        row.seconds = time.perf_counter() - started
        return row

    def plain(self, one: Candidate) -> EffectRow:
        """What is known of a candidate without running it low: its outputs, bytes and FLOPs."""
        names = lens_outputs(self._lens, one)
        nbytes, flops = saved_bytes(self._lens, one), self._flops(one, self._inputs(one)[0])
        return EffectRow(i=one.i, node=one.label, op=one.op, outputs=names, nbytes=nbytes, flops=flops)

    def _fed_by(self, one: Candidate) -> list[int] | None:
        """The candidates that make what it reads, itself or through nodes that only move values; None if others do."""
        cut, found = self._lens.model.cut, set[int]()
        waiting = [each.name for each in one.activations]
        while waiting:
            i = cut.maker.get(waiting.pop())
            if i in self._lens.by_i:
                found.add(i)
            elif i is None or cut.nodes[i].op_type not in EXACT:
                return None
            else:
                waiting += [name for name in cut.reads[i] if name not in self._lens.fixed]
        return sorted(found)

    def _alone(self, one: Candidate, setting: Setting) -> float | None:
        return finite(self._lens.errors_of(self._lens.outputs({one.i: setting})).worst)

    def _inputs(self, one: Candidate) -> list[Tensors]:
        """The tensors that candidates of this one's part read and make, in FP32, of each input in turn."""
        part = self._lens.chain.part_of[one.i]
        with self._looking:
            if part not in self._parts:
                if len(self._parts) == _PARTS_KEPT:
                    del self._parts[min(self._parts)]
                self._parts[part] = self._look(part)
            return self._parts[part]

    def _look(self, part: int) -> list[Tensors]:
        lens = self._lens
        inside = [other for other in lens.candidates if lens.chain.part_of[other.i] == part]
        names = {name for other in inside for name in lens.model.cut.nodes[other.i].output if name}
        names |= {each.name for other in inside for each in other.activations}
        return [{**feed, **lens.chain.look(feed, part, names)} for feed in lens.feeds]

    def _operands(self, one: Candidate, row: EffectRow, inputs: Sequence[Tensors]) -> None:
        """SQNR of weights and activations, and what of an activation's error is clipping."""
        lens = self._lens
        for each in one.weights:
            array = lens.array(each.name)
            row.sqnr_weight = _least(row.sqnr_weight, _sqnr(array, lens.weight(one, each)))
        for each in one.activations:
            scale = lens.scales.get((one.i, each.position))
            arrays = [np.asarray(known[each.name], np.float32) for known in inputs if each.name in known]
            if not arrays:  # made in an earlier part
                continue
            lows = [fake(array, lens.form, scale, each.axis) for array in arrays]
            whole, low = (np.concatenate([array.ravel() for array in some]) for some in (arrays, lows))
            row.sqnr_activation = _least(row.sqnr_activation, _sqnr(whole, low))
            if scale is not None and lens.form.kind != "nv" and not scale.scale.ndim:
                clipped, clipping = _clipped(whole, low, lens.form, scale)
                row.clipped = max(row.clipped or 0.0, clipped)
                row.clipping = max(row.clipping or 0.0, clipping)

    def _flops(self, one: Candidate, known: Tensors) -> int:
        """Multiplications and additions of the node on the first input, by its shapes."""
        names = lens_outputs(self._lens, one)
        made = sum(known[name].size for name in names if name in known)
        if one.outputs and one.op not in ("MatMul", "Gemm", "Conv", "ConvTranspose"):
            return int(made)
        if one.op == "Gather":
            return 0
        node = self._lens.model.cut.nodes[one.i]
        last = one.operands[-1]
        shape = self._lens.shape(node.input[last.position], known)
        if not shape:
            return int(2 * made)
        if one.op in ("Conv", "LSTM", "GRU", "RNN"):
            return int(2 * made * math.prod(shape[1:]))
        if one.op == "ConvTranspose":
            first = self._lens.shape(node.input[0], known)
            return int(2 * math.prod(first) * math.prod(shape[1:]))
        return int(2 * made * shape[last.axis])


def lens_outputs(lens: Lens, one: Candidate) -> list[str]:
    """The tensors that a candidate's node makes."""
    return [name for name in lens.model.cut.nodes[one.i].output if name]


def saved_bytes(lens: Lens, one: Candidate) -> int:
    """What a candidate's weights take less in the format."""
    sizes = (math.prod(lens.shape(each.name, {})) or lens.array(each.name).size for each in one.weights)
    return int(sum(sizes) * (32 - lens.form.bits) / 8)


class _Channels:
    """Squared errors of a node's output by channel."""

    def __init__(self, op: str) -> None:
        self._axis = 1 if op in ("Conv", "ConvTranspose") else -1
        self._sums: NDArray[np.float64] | None = None

    def add(self, made: Array, reference: Array) -> None:
        if made.shape != reference.shape or made.dtype.kind != "f" or made.ndim < 2:
            return
        apart = np.square(made.astype(np.float64) - reference)
        axes = tuple(i for i in range(made.ndim) if i != self._axis % made.ndim)
        found = apart.sum(axis=axes)
        if self._sums is None or self._sums.shape == found.shape:
            self._sums = found if self._sums is None else self._sums + found

    def worst(self) -> list[Channel]:
        total = 0.0 if self._sums is None else float(self._sums.sum())
        if self._sums is None or not total or not math.isfinite(total):
            return []
        order = np.argsort(-self._sums, kind="stable")[:_CHANNELS]
        return [Channel(int(i), float(self._sums[i] / total)) for i in order]


def _sqnr(array: Array, low: Array) -> float | None:
    finite_ones = np.isfinite(array) & np.isfinite(low)
    a, b = array[finite_ones].astype(np.float64), low[finite_ones].astype(np.float64)
    return decibels(float(np.sum(a * a)), float(np.sum((a - b) ** 2)))


def _least(a: float | None, b: float | None) -> float | None:
    return min((value for value in (a, b) if value is not None), default=None)


def _clipped(whole: Array, low: Array, form: Format, scale: Scale) -> tuple[float, float]:
    """The share of values beyond the range, and that of the squared error that they make."""
    if form.kind == "integer":
        least = (form.least - float(scale.zero) - 0.5) * float(scale.scale)
        most = (form.most - float(scale.zero) + 0.5) * float(scale.scale)
    else:
        most = MINI[form.element].largest * float(scale.scale)
        least = -most
    beyond = (whole < least) | (whole > most)
    squares = np.square((whole - low).astype(np.float64))
    total = float(squares.sum())
    return float(beyond.mean()), float(squares[beyond].sum()) / total if total else 0.0


def some_sets(rows: Sequence[int], count: int) -> Iterator[list[int]]:
    """Sets that the prediction is held against: of 2, of 5, of half of the candidates, in turn; always the same."""
    rng = np.random.default_rng(0)
    sizes = [size for size in (len(rows) // 2, 5, 2) if 2 <= size < len(rows)]
    for number in range(count if sizes else 0):
        yield sorted(int(i) for i in rng.choice(list(rows), sizes[number % len(sizes)], replace=False))
