"""A model whose chosen nodes are low: with ONNX's own operators where these can say it, else with FP32 arithmetic.

Integers and FP8: QuantizeLinear and DequantizeLinear around activations, weights stored quantised. Blocks of integers
in weights: DequantizeLinear with block_size. MX and NVFP4, and a scale for each place of an activation, are nodes in
FP32 that round alike. FP16 and bfloat16 are conversions (`surgery.precision`).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.quantise.arithmetic import LEAST_OPSET, fake_nodes
from layerwise._tool.surgery.quantise.candidates import Candidate, Operand
from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import MINI, Format
from layerwise._tool.surgery.quantise.numeric import Scale, blocked, dtype_of, fake, unblocked
from layerwise._tool.surgery.rewrite.tidy import cleaned_model

STORED: dict[str, int] = {
    "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "uint4": TensorProto.UINT4,
    "fp8e4m3": TensorProto.FLOAT8E4M3FN, "fp8e5m2": TensorProto.FLOAT8E5M2,
}  # fmt: skip
_OPSETS = {"int4": 21, "uint4": 21, "fp8e4m3": 19, "fp8e5m2": 19}


class Given(Struct, frozen=True):
    """What a mixed model is made of. array: a weight's values by its tensor; weight_scale: its scale, None where its
    format has none; scales: (node, position) -> an activation's. block: of weights, 0: none. emulate: nodes in FP32
    round, whatever the format.
    """

    form: Format
    array: Callable[[str], NDArray[np.float32]]
    weight_scale: Callable[[Operand, NDArray[np.float32]], Scale | None]
    scales: Mapping[tuple[int, int], Scale]
    ranks: Mapping[str, int]
    block: int = 0
    emulate: bool = False

    @property
    def stored(self) -> bool:
        """Whether ONNX's operators say it."""
        return self.form.name in STORED and not self.emulate


def real(form: Format, *, scalar: bool = True) -> bool:
    """Whether ONNX's operators say it. scalar: activations have one scale."""
    return form.kind == "half" or (form.kind in ("integer", "float8") and scalar)


def least_opset(form: Format, block: int) -> int:
    """The opset that a mixed model needs."""
    return max(_OPSETS.get(form.name, LEAST_OPSET), 21 if block and form.name in STORED else 0)


def mixed(structure: Structure, chosen: Sequence[Candidate], given: Given) -> Structure:
    """The model with these nodes low; `structure` is of `least_opset` or later. Not for FP16 and bfloat16."""
    return cleaned_model(_Mixed(structure, given).result(chosen))


class _Mixed:
    def __init__(self, structure: Structure, given: Given) -> None:
        self._structure, self._given = structure, given
        opset = structure.opsets.get("", structure.opsets.get("ai.onnx", 1))
        taken = {name for node in structure.nodes for name in node.output} | set(structure.initializers)
        prefix = "quantised/"
        while any(name.startswith(prefix) for name in taken):
            prefix = "_" + prefix
        self._new = Emitter(prefix, opset)
        self._known: dict[tuple[object, ...], str] = {}

    def result(self, chosen: Sequence[Candidate]) -> Structure:
        nodes: list[onnx.NodeProto] = []
        by_output = {one.made: one for one in chosen}
        for node in self._structure.nodes:
            one = by_output.get(next(filter(None, node.output), ""))
            if one is None:
                nodes.append(node)
                continue
            low = changed(node)
            for operand in one.operands:
                low.input[operand.position] = self._operand(one, operand)
            ends = [self._rounded_output(low, position) for position in one.outputs]
            before, after = self._new.taken(), [node for end in ends for node in end]
            nodes += [*before, low, *after]
        weights = {**self._structure.initializers, **{tensor.name: tensor for tensor in self._new.constants}}
        return self._structure.with_(nodes=tuple(nodes), initializers=weights)

    def _rounded_output(self, low: onnx.NodeProto, position: int) -> list[onnx.NodeProto]:
        """Round an output of a node; the nodes that do."""
        name = low.output[position]
        low.output[position] = f"{self._new.prefix}exact/{name}"
        before = self._new.taken()
        fake_nodes(self._new, low.output[position], self._given.form)
        after, self._new.nodes = self._new.taken(), before
        after[-1].output[0] = name
        return after

    def _operand(self, one: Candidate, operand: Operand) -> str:
        if operand.weight:
            key: tuple[object, ...] = (operand.name, operand.axis, operand.channel)
            if key not in self._known:
                self._known[key] = self._weight(operand)
            return self._known[key]
        scale = self._given.scales.get((one.i, operand.position))
        told = () if scale is None else (scale.scale.tobytes(), scale.zero.tobytes(), scale.scale.shape)
        key = (operand.name, *told, operand.axis if self._given.form.block else None)
        if key not in self._known:
            self._known[key] = self._activation(operand, scale)
        return self._known[key]

    def _activation(self, operand: Operand, scale: Scale | None) -> str:
        given, new = self._given, self._new
        if scale is None or scale.scale.ndim or not given.stored:
            names = ("", "") if scale is None else (new.array(scale.scale), new.array(scale.zero))
            dims = [None] * given.ranks.get(operand.name, 0)
            return fake_nodes(new, operand.name, given.form, *names, axis=operand.axis, dims=dims)
        size, zero = new.array(scale.scale), self._zero(np.asarray(scale.zero))
        return new.op("DequantizeLinear", new.op("QuantizeLinear", operand.name, size, zero), size, zero)

    def _weight(self, operand: Operand) -> str:
        given, new = self._given, self._new
        array = given.array(operand.name)
        scale = given.weight_scale(operand, array)
        if not given.stored or scale is None:
            return new.array(fake(array, given.form, scale, operand.axis, given.block))
        if given.block:
            return self._blocks(operand, array, scale)
        stored = self._stored(array, scale)
        axes = [axis for axis, length in enumerate(scale.scale.shape) if length > 1]
        if not axes:
            size, zero = (np.asarray(values).reshape(()) for values in (scale.scale, scale.zero))
            return new.op("DequantizeLinear", stored, new.array(size), self._zero(zero, shared=False))
        zeros = self._zero(scale.zero.ravel(), shared=False)
        return new.op("DequantizeLinear", stored, new.array(scale.scale.ravel()), zeros, axis=axes[0])

    def _blocks(self, operand: Operand, array: NDArray[np.float32], scale: Scale) -> str:
        """Blocks along an axis whose last one may be short: what is stored is not padded, the scales are."""
        new, block = self._new, self._given.block
        axis = operand.axis % array.ndim
        rows = blocked(array, axis, block)
        count = -(-array.shape[axis] // block)
        lines = [length for i, length in enumerate(array.shape) if i != axis]
        codes = self._codes(rows, scale)
        stored = new.tensor(self._proto(unblocked(codes, array, axis)))
        size, zero = (np.moveaxis(values.reshape(*lines, count), -1, axis) for values in (scale.scale, scale.zero))
        return new.op("DequantizeLinear", stored, new.array(size), self._zero(zero), axis=axis, block_size=block)

    def _codes(self, array: NDArray[np.float32], scale: Scale) -> NDArray[np.float32]:
        """What is stored, as FP32."""
        form = self._given.form
        found = array / scale.scale
        if form.kind == "integer":
            return np.asarray(np.clip(np.rint(found) + scale.zero, form.least, form.most), np.float32)
        most = MINI[form.element].largest
        return np.asarray(np.clip(found, -most, most), np.float32)

    def _stored(self, array: NDArray[np.float32], scale: Scale) -> str:
        """onnxruntime turns no weight into uint8 that it shares with another, nor its zero points."""
        return self._new.tensor(self._proto(self._codes(array, scale)), shared=False)

    def _proto(self, codes: NDArray[np.float32]) -> TensorProto:
        form = self._given.form
        kind = helper.tensor_dtype_to_np_dtype(STORED[form.name]) if form.kind == "integer" else dtype_of(form.element)
        return numpy_helper.from_array(np.asarray(codes, order="C").astype(kind))

    def _zero(self, zero: NDArray[np.float32], *, shared: bool = True) -> str:
        return self._new.tensor(self._proto(np.asarray(zero, np.float32)), shared=shared)
