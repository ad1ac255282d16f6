"""One model, its candidates and its inputs: calibrated, and measured in any choice of low nodes."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.search.lens.chain import Chain, Setting, Tensors
from layerwise._tool.debugtools.search.lens.errors import Errors
from layerwise._tool.debugtools.search.lens.spec import Rounding
from layerwise._tool.surgery.quantise.arithmetic import Dims
from layerwise._tool.surgery.quantise.calibrate import Range, weight_scale
from layerwise._tool.surgery.quantise.candidates import Candidate, Operand, candidates, constants
from layerwise._tool.surgery.quantise.formats import FORMATS, QUANTISED_OPS
from layerwise._tool.surgery.quantise.numeric import Scale, blocked, fake
from layerwise._tool.surgery.types.node_types import tensor_types
from layerwise._tool.surgery.types.shapes import inferred_tensors

_OTHER_FLOATS = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16", TensorProto.DOUBLE: "float64"}
_Subject = TypeVar("_Subject")
_Result = TypeVar("_Result")
_KEPT_LOW = 512 << 20  # bytes at most, and half of what the weights take


class Lens:
    """Close it. feeds: all inputs; `begin` calibrates with them. unknown: nodes left out since inference knows no rank
    of what they read, which blocks need. UsageError where there is nothing to measure.
    """

    def __init__(
        self, model: Model, runner: RunnerSpec, rounding: Rounding, feeds: Sequence[Tensors], *,
        ops: Collection[str] = (), keep: Collection[str] = (), tolerance: ToleranceSpec | None = None,
    ) -> None:  # fmt: skip
        self.model, self.rounding, self.feeds = model, rounding, list(feeds)
        self.form = FORMATS[rounding.to]
        self._tolerance = tolerance
        self.unknown = 0
        shapes = {name: array.shape for name, array in self.feeds[0].items()}
        types = tensor_types(model.cut.model)
        found = candidates(
            model.cut, self.form, types, weights=rounding.weights,
            activations=rounding.activations, ops=ops,
        )  # fmt: skip
        dims: dict[str, Dims] = {}
        if self.form.block:
            dims = {
                name: [length if isinstance(length, int) else None for length in info.shape or ()]
                for name, info in inferred_tensors(model.cut.model, shapes).items()
            }
            known = [one for one in found if all(dims.get(each.name) for each in one.activations)]
            self.unknown, found = len(found) - len(known), known
        self.ranks = {name: len(lengths) for name, lengths in dims.items()}
        if any(array.shape != shapes.get(name) for feed in self.feeds for name, array in feed.items()):
            dims = {name: [None] * rank for name, rank in self.ranks.items()}
        self.candidates = [one for one in found if one.label not in keep]
        if not self.candidates:
            raise UsageError(f"no node of this model can be {rounding.to}{_why(model)}")
        self.by_i = {one.i: one for one in self.candidates}
        self.fixed = constants(model.cut)
        self.chain = Chain(model, runner, self.candidates, self.form, model.cut.estimates(shapes), dims, types)
        self.scales: dict[tuple[int, int], Scale] = {}
        self.reference: list[dict[str, Array]] = []
        self._made: dict[str, Array] = {}
        self._low: dict[tuple[int, int], Array] = {}
        self._low_bytes, self._keeping = 0, Lock()
        self._room = min(_KEPT_LOW, sum(ref.nbytes for ref in model.file.weights().values()) // 2)

    def begin(self, *, at_once: bool = False) -> None:
        """Run all inputs in FP32: outputs, ranges of activations, weights that nodes make. at_once: for `several`."""
        self.chain.expect(self.chain.at_once if at_once else 1)
        ranges: dict[tuple[str, int | None], Range] = {}
        acts = [(one, each) for one in self.candidates for each in one.activations]
        static = acts if self.form.kind in ("integer", "float8", "nv") else []
        look, plain = {each.name for _, each in static}, self.rounding.calibration == "minmax"
        made = {each.name for one in self.candidates for each in one.weights} - self.model.cut.initializers.keys()
        for feed in self.feeds:
            given = {name: array for name, array in feed.items() if name in look}
            for tensors in chain([given], self.chain.full(feed, look | made)):
                for key in {(each.name, self._along(each)) for _, each in static} if tensors else ():
                    if key[0] in tensors:
                        ranges.setdefault(key, Range(key[1], ends=plain)).add(_single(tensors[key[0]]))
                self._made.update({name: array for name, array in tensors.items() if name in made})
            self.reference.append(dict(self.chain.last))
        how = self.rounding
        for one, each in static:
            found = ranges.get((each.name, self._along(each)))
            if found is not None:
                self.scales[one.i, each.position] = found.scale(
                    self.form, symmetric=how.symmetric_activations, calibration=how.calibration,
                    percentile=how.percentile,
                )  # fmt: skip

    def _along(self, operand: Operand) -> int | None:
        return operand.axis if self.rounding.activation_scales == "channel" else None

    def setting(
        self, one: Candidate, *, weights: bool = True, activations: bool = True, ends: bool | None = None
    ) -> Setting:  # fmt: skip
        """How a candidate is switched on, with its weights and activations low, or one of both. ends: its outputs,
        None: as its activations.
        """
        scales = {each.position: self.scales.get((one.i, each.position)) for each in one.activations}
        known = {position: scale for position, scale in scales.items() if scale is not None}
        return Setting(
            activations,
            activations if ends is None else ends,
            {position: scale.scale for position, scale in known.items()},
            {position: scale.zero for position, scale in known.items()},
            {each.position: self.weight(one, each) if weights else self.array(each.name) for each in one.weights},
        )

    def array(self, name: str) -> NDArray[np.float32]:
        """A weight as it is."""
        made = self._made.get(name)
        return _single(self.model.file.array(name) if made is None else made)

    def weight(self, one: Candidate, operand: Operand) -> NDArray[np.float32]:
        """A weight as the format holds it; kept as long as there is room."""
        key = (one.i, operand.position)
        known = self._low.get(key)
        if known is not None:
            return known
        low = self.low_weight(operand)
        with self._keeping:
            if self._low_bytes + low.nbytes <= self._room:
                self._low_bytes += low.nbytes
                self._low[key] = low
        return low

    def low_weight(self, operand: Operand) -> NDArray[np.float32]:
        """A weight as the format holds it."""
        array = self.array(operand.name)
        scale = self.weight_scale(operand, array)
        return fake(array, self.form, scale, operand.axis, self.block)

    @property
    def block(self) -> int:
        """Values that share a weight's scale in blocks, 0 where none do."""
        return self.form.block or (self.rounding.block if self.rounding.weight_scales == "block" else 0)

    def weight_scale(self, operand: Operand, array: NDArray[np.float32]) -> Scale | None:
        """The scale of a weight, None where its format needs none; of blocks, one for each row of `blocked`."""
        how, form = self.rounding, self.form
        if form.kind in ("half", "mx"):
            return None
        more: dict[str, Any] = {"symmetric": how.symmetric_weights, "percentile": how.percentile}
        more["calibration"] = how.calibration if how.calibration in ("mse", "percentile") else "minmax"
        if form.kind == "nv":
            return weight_scale(array, form, None, symmetric=True)
        if self.block:
            return weight_scale(blocked(array, operand.axis, self.block), form, 0, **more)
        channel = operand.channel if how.weight_scales == "channel" and array.ndim > 1 else None
        return weight_scale(array, form, channel, **more)

    def several(
        self, some: Sequence[_Subject], does: Callable[[_Subject], _Result], most: int | None = None
    ) -> Iterator[_Result]:
        """Do something that runs the model for each, several at once (at most `most`); what it gives, in their order.
        Afterwards `chain.expect(1)` gives single runs all threads.
        """
        workers = min(self.chain.at_once, len(some), most or len(some))
        if workers < 2:
            yield from map(does, some)
            return
        self.chain.expect(self.chain.at_once)
        with ThreadPoolExecutor(workers, "lens") as pool:
            waiting = deque(pool.submit(does, one) for one in some)
            try:
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def measured(self, on: Iterable[int]) -> Errors:
        """What the outputs are off by with these candidates low, on all inputs."""
        return self.errors_of(self.outputs({i: self.setting(self.by_i[i]) for i in on}))

    def outputs(self, settings: Mapping[int, Setting], look: Collection[str] = ()) -> Iterator[dict[str, Array]]:
        """The outputs of each input with these candidates switched on, and what is looked at."""
        return (self.chain.run(feed, settings, look) for feed in self.feeds)

    def errors_of(self, outputs: Iterable[Tensors]) -> Errors:
        """What outputs, of each input in turn, are off by."""
        errors = Errors(self._tolerance)
        for made, reference in zip(outputs, self.reference, strict=True):
            errors.add(made, reference)
        return errors

    def shape(self, name: str, tensors: Mapping[str, Array]) -> tuple[int, ...]:
        """The shape of a tensor among these, or of a weight; () if it is neither."""
        known = tensors.get(name, self._made.get(name))
        if known is not None:
            return tuple(known.shape)
        weights = self.model.file.weights()
        return tuple(weights[name].dims) if name in weights else ()

    def close(self) -> None:
        self.chain.close()
        self._low, self._made, self._low_bytes = {}, {}, 0


def _why(model: Model) -> str:
    """What else than FP32 the products compute in, where that is why."""
    types = tensor_types(model.cut.model)
    given = {types.get(name) for node in model.cut.nodes if node.op_type in QUANTISED_OPS for name in node.input}
    names = [name for kind, name in _OTHER_FLOATS.items() if kind in given]
    return f": its products are in {' and '.join(names)}, give the model in FP32" if names else ""


def _single(array: Array) -> NDArray[np.float32]:
    return np.asarray(array, np.float32)


def decibels(signal: float, noise: float) -> float | None:
    """The ratio of two sums of squares in dB; None where there is no noise."""
    return 10 * math.log10(signal / noise) if signal > 0 and noise > 0 and math.isfinite(noise) else None
