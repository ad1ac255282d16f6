"""A graph that a runner goes through: a side's model, or the body of one of its nodes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.onnxrt import saturation
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, is_floating, to_onnx
from layerwise._tool.debugtools.compare.arithmetic.sentinels import HUGE
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.sides.stream import GraphStream, SessionPool, observing
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.surgery.cut.explode import Exploder

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment

Result = Array | str | None
MANY_FAILURES = 200
"""Sessions that may be spent on finding out which regions of a graph fail."""
_DEAR_FAILURES = 40  # engines that may be, each built anew
DType = np.dtype[Any]


@dataclass(frozen=True)
class Part:
    """folder: where the graph's external weights resolve. name: the runner's. values: as `Graph` has them."""

    cut: "GraphCut"
    folder: Path
    spec: RunnerSpec
    name: str
    values: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None = None

    @classmethod
    def observed(cls, side: ModelSide) -> "Part":
        """The graph that a side is observed in."""
        return cls(side.observed.cut, side.observed.folder, side.spec, side.name, side.observed.values)

    @classmethod
    def model(cls, side: ModelSide) -> "Part":
        """The main graph of a side's model."""
        return cls(side.model.cut, side.model.file.folder, side.spec, side.name)

    def stream(
        self, plan: "Sequence[Segment]", feed: Mapping[str, Array], pool: SessionPool
    ) -> Iterator[Mapping[str, Array]]:
        """Run the segments one after the other, giving what each makes."""
        if self.values is not None:
            seen = self.values(feed)
            return ({name: seen[name] for name in segment.gives if name in seen} for segment in plan)
        return iter(GraphStream(self.cut, plan, self.spec, self.name, self.folder, feed, pool))

    def weight(self, name: str) -> Array:
        """The value of an initializer. BadFile if it is damaged."""
        if self.spec.kind == "torch":
            from layerwise._tool.backends.torch.parts import weight_of

            return weight_of(self.cut.model.graph.name, name)
        return self.value(self.cut.initializers[name])

    def value(self, tensor: onnx.TensorProto) -> Array:
        """What a tensor of the graph's file holds. BadFile if it is damaged."""
        from layerwise._tool.backends.reference.evaluate import tensor_array  # it imports all reference operators

        return tensor_array(tensor, self.folder)

    def weights(self, node: onnx.NodeProto) -> dict[str, Array]:
        """The initializers that a node takes as inputs."""
        return {name: self.weight(name) for name in node.input if name in self.cut.initializers}

    def place(self, name: str) -> Place:
        """Where a tensor of the graph is made."""
        i = self.cut.maker[name]
        return Place(i, self.cut.nodes[i].name, self.cut.nodes[i].op_type, depth=self.cut.depth[i])


class LocalRuns:
    """Runs regions of one graph. What cannot run is found by halving, and comes back as a message.

    varies: regions that run together may give something else than each by itself, since they are built together.
    precise: by kernels of onnxruntime that do not saturate.
    """

    def __init__(self, part: Part, exploder: Exploder, *, precise: bool = False) -> None:
        self._part, self._exploder, self._spec = part, exploder, observing(part.spec)
        if precise:
            self._spec = saturation.precise(self._spec, part.cut.model)
        self.varies = part.spec.kind == "trt"
        self._tries = _DEAR_FAILURES if part.spec.kind == "trt" else MANY_FAILURES

    def run(
        self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str]
    ) -> Iterator[tuple[str, Result]]:
        """Give each tensor of `names` as its region makes it, or why it cannot; None for what cannot be fed.

        feed: at least what the regions read; own: tensors of Constant nodes that are taken as they are.
        MissingDependency if the backend is not there.
        """
        try:
            made = self._infer(names, feed, own)
        except MissingDependency:
            raise
        except UsageError:  # strings beside types that NumPy lacks
            yield from self._halves(names, feed, own, None)
        except LayerwiseError as error:
            yield from self._halves(names, feed, own, str(error))
        else:
            for name in names:
                yield name, made.get(name, "it gives no value")

    def _infer(self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str]) -> dict[str, Array]:
        wanted = self._exploder.feeds(names, own)
        types = {name: to_onnx(dtype_name(feed[name])) for name in wanted}
        exploded = self._exploder.build(names, types, own)
        model = Loadable(data=exploded.data, folder=self._part.folder)
        with open_runner(self._spec, model, name=self._part.name) as runner:
            outputs = runner.infer({name: feed[name] for name in exploded.feeds}).outputs
        return {exploded.gives[given]: array for given, array in outputs.items() if given in exploded.gives}

    def _halves(
        self, names: Sequence[str], feed: Mapping[str, Array], own: Collection[str], why: str | None
    ) -> Iterator[tuple[str, Result]]:
        self._tries -= 1
        if len(names) == 1 or self._tries < 0:
            yield from ((name, why) for name in names)
            return
        middle = len(names) // 2
        yield from self.run(names[:middle], feed, own)
        yield from self.run(names[middle:], feed, own)


def fits(array: Array, dtype: DType) -> bool:
    """Whether a tensor can be had in the suspect's type: floating ones are rounded, others must keep their values."""
    names = dtype_name(array), dtype_name(dtype)
    if names[0] == names[1] or all(map(is_floating, names)):
        return True
    if "string" in names:
        return False
    with np.errstate(all="ignore"):
        return bool(np.array_equal(array.astype(dtype).astype(array.dtype), array))


def fit(array: Array, dtype: DType | None) -> Array:
    """Return a tensor that fits in the suspect's type; as it is if that is not known.

    What masks hide stays finite: no type is meant to hold it.
    """
    if dtype is None or array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        fitting = array.astype(dtype)
        hidden = np.isfinite(array) & (np.abs(array) >= HUGE) if is_floating(dtype_name(array)) else None
        if hidden is not None and hidden.any() and is_floating(dtype_name(fitting)):
            fitting[hidden] = np.copysign(_largest(dtype), array[hidden]).astype(dtype)
    return fitting


def _largest(dtype: DType) -> float:
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
