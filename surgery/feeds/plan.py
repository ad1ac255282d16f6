"""The plan of a model's inputs: shapes that fit together, values that its graph takes, and the reason for each."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

import onnx
from msgspec.structs import replace

from layerwise._tool.backends.model.protos import dims_of, inferred, set_shape
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.backends.tensors import Dim, TensorInfo, is_integral
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.feeds.attempts import attempts, position_rows
from layerwise._tool.surgery.feeds.graph import FeedGraph
from layerwise._tool.surgery.feeds.roles import Chosen, Roles
from layerwise._tool.surgery.feeds.sizes import Dims, Sizer, base_sizes
from layerwise._tool.surgery.feeds.stem import Stem, stem

Say = Callable[[str], None]
_NODES, _SECONDS = 30_000, 20.0  # beyond these shapes are chosen without being tried
_ROUNDS = 64  # of shapes in turn, whatever the number of iterations: they decide what fits all of them
_FREE = ("integers", "uniform", "normal")


class Fitted(NamedTuple):
    """Shapes of the inputs, and what gave them. known: dimensions of inner tensors for these."""

    sizer: Sizer
    shapes: dict[str, list[int]]
    known: dict[str, list[Dim]]
    problem: str = ""


def input_plans(model: onnx.ModelProto, spec: FeedSpec, warn: Say) -> list[InputPlan]:
    """Return a plan for each input of a structure, in order; shapes and ranges of `spec` win over what the graph says.

    warn: gets what could not be found out. No weight is read.
    """
    graph = FeedGraph(model)
    stems = {info.name: stem(graph, info.name, len(info.shape or ())) for info in graph.inputs if info.shape}
    rounds = [_fitted(graph, stems, pins) for pins in _pins(spec, graph.inputs)]
    if rounds[0].problem:
        warn(f"shape inference does not accept the shapes that were chosen ({shown(rounds[0].problem, 300)}): "
             "give others with --input-shapes if the model does not run")  # fmt: skip
    chosen: list[dict[str, Chosen]] = []
    for fitted in rounds:
        graph.learn(fitted.known)
        roles = Roles(graph, fitted.sizer, fitted.shapes, stems)
        chosen.append({info.name: roles.of(info) for info in graph.inputs})
    return [_plan(info, spec, rounds, [each[info.name] for each in chosen]) for info in graph.inputs]


def _plan(info: TensorInfo, spec: FeedSpec, rounds: Sequence[Fitted], each: Sequence[Chosen]) -> InputPlan:
    first, shapes = each[0], [fitted.shapes[info.name] for fitted in rounds]
    shapes = shapes[:1] if all(shape == shapes[0] for shape in shapes) else shapes
    plan = InputPlan(
        name=info.name, dtype=info.dtype, declared=None if info.shape is None else list(info.shape), shapes=shapes,
        kind=first.kind, low=first.low, high=min(found.high for found in each), values=list(first.values),
        reason=first.reason, pinned=bool(_given(spec.shapes, info.name)),
    )  # fmt: skip
    own = spec.val_range.get(info.name)
    if own is None and first.kind in _FREE and not first.reason.startswith(("gathers", "is one-hot", "chooses")):
        own = spec.val_range.get("")
    values = _as_values(spec, info)
    if values is not None:
        return replace(plan, kind="values", values=values, shapes=[[len(values)]], pinned=True, reason="as given")
    if own is None:
        return plan
    kind = "integers" if is_integral(info.dtype) or info.dtype == "bool" else "uniform"
    return replace(plan, kind=kind, low=own[0], high=own[1], values=[], pinned=True,
                   reason=f"range as given (the graph: {first.reason})")  # fmt: skip


def _as_values(spec: FeedSpec, info: TensorInfo) -> list[float] | None:
    """A given shape that is the values of a shape tensor, as Polygraphy takes it."""
    given = _given(spec.shapes, info.name)
    if given and is_integral(info.dtype) and info.shape == (len(given[0]),):
        return [float(value) for value in given[0]]
    return None


def _given(shapes: Mapping[str, list[list[int]]], name: str) -> list[list[int]]:
    fitting = (found for pattern, found in shapes.items() if fnmatchcase(name, pattern))
    return shapes.get(name) or next(fitting, [])


def _pins(spec: FeedSpec, inputs: Sequence[TensorInfo]) -> list[dict[str, list[int]]]:
    """The shapes that the user gave, one dict an iteration."""
    given = {info.name: found for info in inputs if (found := _given(spec.shapes, info.name))}
    given = {info.name: given[info.name] for info in inputs if info.name in given and _as_values(spec, info) is None}
    count = math.lcm(*(len(found) for found in given.values())) if given else 1
    most = spec.iterations or max((len(found) for found in given.values()), default=1)
    rounds = count if count <= _ROUNDS else min(count, most)
    return [{name: found[i % len(found)] for name, found in given.items()} for i in range(max(1, rounds))]


def _fitted(graph: FeedGraph, stems: Mapping[str, Stem], pins: Mapping[str, list[int]]) -> Fitted:
    """The first shapes that shape inference accepts; the first of all where it accepts none."""
    bound = {
        dim: size
        for info in graph.inputs if info.name in pins and info.shape and info.fits(pins[info.name])
        for dim, size in zip(info.shape, pins[info.name], strict=True) if isinstance(dim, str)
    }  # fmt: skip
    first: Fitted | None = None
    until = time.monotonic() + _SECONDS
    base = base_sizes(stems, position_rows(graph))
    for sizes, apart in attempts(graph, stems, base):
        sizer = Sizer(graph.inputs, stems, Dims(sizes, apart), bound)
        shapes = {info.name: pins.get(info.name) or sizer.shape(info) for info in graph.inputs}
        known, problem = _tried(graph.model, shapes)
        fitted = Fitted(sizer, shapes, known, problem)
        if not problem:
            return fitted
        first = first or fitted
        if all(all(isinstance(dim, int) for dim in info.shape or ()) for info in graph.inputs):
            break
        if time.monotonic() > until:
            break
    assert first is not None
    return first


def _tried(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> tuple[dict[str, list[Dim]], str]:
    """What shape inference finds for these shapes of the inputs; and why it does not accept them."""
    if len(model.graph.node) > _NODES:
        return {}, ""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if value.name in shapes and value.type.HasField("tensor_type"):
            set_shape(value, shapes[value.name])
    del fixed.graph.value_info[:]  # their symbols would be held against the sizes
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    problem = ""
    try:
        found = inferred(fixed, strict=True, values=True)
    except Exception as error:  # onnx raises its own, protobuf's, RuntimeError and ValueError here
        problem = str(error) or type(error).__name__
        found = fixed
        with suppress(Exception):
            found = inferred(fixed, values=True)
    return {value.name: dims_of(value) for value in _tensors(found.graph)}, problem


def _tensors(graph: onnx.GraphProto) -> Iterable[onnx.ValueInfoProto]:
    values = (*graph.input, *graph.value_info, *graph.output)
    return (value for value in values if value.type.tensor_type.HasField("shape"))
