"""Edits of shapes: static inputs, the batch, symbolic dimensions, upper bounds."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.protos import dims_of, set_shape
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import Edit, listed
from layerwise._tool.surgery.edits.ends import Length, Tensor
from layerwise._tool.surgery.model.structure import AnyGraph, Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import placed, reread
from layerwise._tool.surgery.rewrite.tidy import map_bodies
from layerwise._tool.surgery.types.incremental import types_of
from layerwise._tool.surgery.types.unbounded import unbounded_tensors

_LEAST_OPSET_OF_MIN = 12  # with integers


class SetShape(Edit, frozen=True, tag="set-shape", kw_only=True):
    """Change shapes of graph inputs (or outputs), and types if given. Inner shapes are inferred again."""

    tensors: tuple[Tensor, ...]

    def describe(self, called: Called = in_full) -> str:
        return f"set the shape of {listed((tensor.name for tensor in self.tensors), called)}"

    def _applied(self, structure: Structure) -> Structure:
        ends = {value.name for value in (*structure.inputs, *structure.outputs)}
        for tensor in self.tensors:
            if tensor.name not in ends or tensor.name in structure.initializers:
                raise LayerwiseError(f"{shown(tensor.name, 120)!r} is no input or output")
        new = {tensor.name: tensor.value(structure) for tensor in self.tensors}
        inputs = tuple(new.get(value.name, value) for value in structure.inputs)
        outputs = tuple(new.get(value.name, value) for value in structure.outputs)
        return structure.with_(inputs=inputs, outputs=outputs)


class SetBatch(Edit, frozen=True, tag="set-batch", kw_only=True):
    """Set the first dimension of all graph inputs (that have one) to a number or a symbol."""

    batch: Length | str

    def describe(self, called: Called = in_full) -> str:
        return f"set the batch to {shown(str(self.batch), 40)}"

    def _applied(self, structure: Structure) -> Structure:
        new = []
        for value in structure.inputs:
            dims = value.type.tensor_type.shape.dim
            if value.name in structure.initializers or not len(dims):
                new.append(value)
                continue
            copy = changed(value)
            set_shape(copy, [self.batch, *dims_of(value)[1:]])
            new.append(copy)
        if new == list(structure.inputs):
            raise LayerwiseError("no input has another first dimension")
        return structure.with_(inputs=tuple(new))


class FreezeDims(Edit, frozen=True, tag="freeze-dims", kw_only=True):
    """Replace symbolic dimensions by numbers ("batch" -> 1), wherever they are declared."""

    dims: dict[str, Length]

    def describe(self, called: Called = in_full) -> str:
        return "freeze " + listed((f"{name}={size}" for name, size in self.dims.items()), called)

    def _applied(self, structure: Structure) -> Structure:
        symbols = {d.dim_param for v in structure.inputs for d in v.type.tensor_type.shape.dim}
        unknown = [name for name in self.dims if name not in symbols]
        if unknown:
            raise LayerwiseError(f"no input has a dimension {shown(unknown[0], 80)!r}")

        def frozen(graph: AnyGraph) -> AnyGraph:
            freeze = _frozen_by(self.dims)
            graph = map_bodies(graph, frozen)
            return graph.with_(
                inputs=tuple(map(freeze, graph.inputs)),
                outputs=tuple(map(freeze, graph.outputs)),
                values={name: freeze(value) for name, value in graph.values.items()},
            )

        return frozen(structure)


class UpperBounds(Edit, frozen=True, tag="upper-bounds", kw_only=True):
    """Bound the tensors that determine the sizes of others, with a Min. bounds: tensor -> maximum; "" is all others."""

    bounds: dict[str, Length]

    def describe(self, called: Called = in_full) -> str:
        return "limit " + listed(
            (f"{name or 'unbounded tensors'} to {size}" for name, size in self.bounds.items()), called
        )

    def _applied(self, structure: Structure) -> Structure:
        if structure.opsets.get("", structure.opsets.get("ai.onnx", 1)) < _LEAST_OPSET_OF_MIN:
            raise LayerwiseError(f"Min takes integers from opset {_LEAST_OPSET_OF_MIN} on: change the opset first")
        known = types_of(structure)
        tensors = unbounded_tensors(structure.with_(values=known).proto())
        missing = [name for name in self.bounds if name and name not in tensors]
        if missing:
            raise LayerwiseError(f"{shown(missing[0], 120)!r} is not unbounded: there are {listed(tensors) or 'none'}")
        for name in tensors:
            limit = self.bounds.get(name, self.bounds.get(""))
            if limit is not None:
                structure = _limited(structure, name, limit, known)
        return structure


def _frozen_by(sizes: Mapping[str, int]) -> Callable[[onnx.ValueInfoProto], onnx.ValueInfoProto]:
    def freeze(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        dims = dims_of(value)
        if not any(dim in sizes for dim in dims):
            return value
        copy = changed(value)
        set_shape(copy, [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in dims])
        return copy

    return freeze


def _limited(structure: Structure, name: str, limit: int, known: Mapping[str, onnx.ValueInfoProto]) -> Structure:
    value = known.get(name)
    kind = (value.type.tensor_type.elem_type if value is not None else 0) or TensorProto.INT64
    bound, output = structure.fresh(f"{name}_upper_bound"), structure.fresh(f"{name}_bounded")
    array = np.array(limit, helper.tensor_dtype_to_np_dtype(kind))
    node = helper.make_node("Min", [name, bound], [output], structure.fresh_node(f"{name}_limit"))
    reading = reread(structure, {name: output})
    weights = {**structure.initializers, bound: numpy_helper.from_array(array, bound)}
    return placed(reading.with_(initializers=weights), node)
