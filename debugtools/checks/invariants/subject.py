"""The model that is checked: its sessions, its axes, and the feed that all runs are made of."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_name, is_floating
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.axes import BATCH, Batch, dim_key, find_batch
from layerwise._tool.debugtools.checks.invariants.feeds import (
    ATTEMPTS,
    Tried,
    copied,
    first_feed,
    row_count,
    take,
)
from layerwise._tool.debugtools.checks.invariants.locate import Open
from layerwise._tool.debugtools.checks.invariants.spec import InvariantsSpec
from layerwise._tool.surgery.cut.randomness import Randomness
from layerwise._tool.surgery.cut.segments import GraphCut


def opened(spec: RunnerSpec, model: Loadable) -> Runner:
    """A runner on a model."""
    return open_runner(spec, model, name="model")


_CHOOSING = frozenset({"NonMaxSuppression", "NonZero", "Unique", "Compress"})


class OutputAxis(Struct, frozen=True):
    """Where the rows of an output lie. axis: None if it has none. lost: what is wrong if it should have some."""

    name: str
    axis: int | None
    why: str
    lost: str = ""


class Subject:
    """One model. open_session: how it is opened."""

    def __init__(self, spec: InvariantsSpec, file: ModelFile, stack: ExitStack, open_session: Open = opened) -> None:
        self.spec, self._stack, self.open_session = spec, stack, open_session
        self.folder: Path = file.folder
        self._model = Loadable(data=file.structure_bytes(), folder=file.folder)
        self.cut = GraphCut(file.structure())
        self.runner = self.session(spec.runner)
        self.inputs: Sequence[TensorInfo] = self.runner.inputs
        self.declared = {info.name: info for info in tensor_infos(self.cut.model.graph.output)}
        self.batch = find_batch(self.inputs, list(self.declared.values()), spec.batch_axes, self.cut)
        self.refusal = ""
        self.tried, self.feed, self.outputs = self._first()
        self.batch = self._joined()
        self.rows = row_count(self.feed, self.batch)
        self.axes = [self._output_axis(name, fewer) for fewer in [self._fewer()] for name in self.outputs]
        self.random = self._random()
        self.floats = self._floats()

    def session(self, spec: RunnerSpec) -> Runner:
        """A session of the whole model, closed at the end."""
        return self._stack.enter_context(self.open_session(spec, self._model))

    def infer(self, feed: Feed) -> Mapping[str, Array]:
        """The outputs of the model as it is configured."""
        return self.runner.infer(copied(feed)).outputs

    def depth(self, output: str) -> int:
        """How many nodes are behind an output at most."""
        i = self.cut.maker.get(output)
        return 1 if i is None else self.cut.depth[i]

    def feed_of(self, tried: Tried) -> Feed:
        """A feed of other lengths."""
        return first_feed(self.spec.feeds, self.inputs, self.batch, self.cut, tried)

    def _first(self) -> tuple[Tried, Feed, Mapping[str, Array]]:
        """The first lengths that the model runs with. UsageError if it runs with none."""
        attempts = [*ATTEMPTS, *(msgspec.structs.replace(tried, rows=1) for tried in ATTEMPTS)]
        reason, seen = "", set[str]()
        for tried in attempts:
            try:
                feed = self.feed_of(tried)
                shapes = str([array.shape for array in feed.values()])
                if shapes in seen:
                    continue
                seen.add(shapes)
                return tried, feed, self.infer(feed)
            except (MissingDependency, UsageError):
                raise
            except LayerwiseError as error:
                reason = self.refusal = self.refusal or str(error)
        raise UsageError(f"the model runs with no shapes that were tried; give some (--input-shapes). {reason}")

    def _joined(self) -> Batch:
        """The batch with the inputs whose dimension has another such name, if they cannot differ in length."""
        batch = self.batch
        also = {
            info.name: at for info in self.inputs for at in range(len(info.shape or ()))
            if info.name not in batch.axes and not dim_key(info, at).isdigit() and BATCH.fullmatch(dim_key(info, at))
        }  # fmt: skip
        rows = row_count(self.feed, batch)
        if not also or rows < 2 or batch.why == "stated":
            return batch
        try:
            self.infer(take(self.feed, batch, range(rows - 1)))
        except LayerwiseError:
            return msgspec.structs.replace(batch, axes={**batch.axes, **also})
        return batch

    def _fewer(self) -> Mapping[str, Array]:
        """The outputs for one row less; none where that is not possible."""
        if self.batch.fixed is not None or self.rows < 2:
            return {}
        try:
            return self.infer(take(self.feed, self.batch, range(self.rows - 1)))
        except LayerwiseError:
            return {}

    def _output_axis(self, name: str, fewer: Mapping[str, Array]) -> OutputAxis:
        shape, batch = self.outputs[name].shape, self.batch
        if not self.rows:
            return OutputAxis(name, None, "the batch is not known")
        if name in batch.outputs:
            return OutputAxis(name, batch.outputs[name], "stated")
        grown = self._grown(shape, fewer[name].shape) if name in fewer else None
        info = self.declared.get(name)
        called = [at for at in range(len(shape)) if info is not None and dim_key(info, at) == batch.key != "?"]
        if called and not batch.key.isdigit():
            at = called[0]
            if grown in (at, None) and shape[at] % self.rows == 0:
                return OutputAxis(name, at, "its dimension is called so, too")
            lost = f"its axis {at} is declared as the batch and has length {shape[at]} for {self.rows} rows"
            return OutputAxis(name, grown, lost, lost)
        if self._chosen(name):
            return OutputAxis(name, None, "its length depends on values")
        if grown is not None:
            return OutputAxis(name, grown, "it grows with the batch")
        if batch.fixed is None or self.rows < 2:
            return OutputAxis(name, None, "no axis of it grows with the batch")
        usual = min(batch.axes.values())
        at_usual = [usual] if len(shape) > usual and shape[usual] == self.rows else []
        same = at_usual or [at for at, length in enumerate(shape) if length == self.rows]
        if len(same) == 1:
            return OutputAxis(name, same[0], "it is as long as the batch")
        return OutputAxis(name, None, "no axis of it is as long as the batch")

    def _chosen(self, name: str) -> bool:
        """Whether an operator behind an output makes as many elements as it chooses."""
        nodes = self.cut.needed([name]) if name in self.cut.maker else []
        return any(self.cut.nodes[i].op_type in _CHOOSING for i in nodes)

    def _grown(self, shape: Sequence[int], fewer: Sequence[int]) -> int | None:
        """The axis whose length goes with the number of rows."""
        if len(shape) != len(fewer):
            return None
        moved = [at for at, (more, less) in enumerate(zip(shape, fewer, strict=True)) if more != less]
        if len(moved) != 1 or shape[moved[0]] * (self.rows - 1) != fewer[moved[0]] * self.rows:
            return None
        return moved[0]

    def _random(self) -> dict[str, str]:
        """Output -> the node behind it that draws random numbers."""
        randomness = Randomness(self.cut)
        found = {}
        for name in self.cut.outputs:
            needed = self.cut.needed([name]) if name in self.cut.maker else []
            drawing = next((self.cut.nodes[i] for i in needed if randomness.draws(self.cut.nodes[i])), None)
            if drawing is not None:
                found[name] = f"{drawing.op_type} {shown(drawing.name or drawing.output[0], 80)!r}"
        return found

    def _floats(self) -> tuple[str, ...]:
        """The floating types that the model computes in, as far as it says."""
        graph = self.cut.model.graph
        kinds = {tensor.data_type for tensor in graph.initializer}
        kinds |= {value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info, *graph.output)}
        names = sorted(name for kind in kinds if kind and is_floating(name := dtype_name(kind)))
        return tuple(name for name in names if name in ("float16", "bfloat16", "float32"))
