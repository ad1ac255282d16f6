"""The constants of a graph that say how codes become values: scales, zero points, and where they are multiplied."""

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits
from layerwise._tool.debugtools.compare.quantised.operators import DEQUANTIZE
from layerwise._tool.debugtools.compare.quantised.weights import Weights

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_FEW = 4  # nodes that are looked through
_TO_WORD = re.compile(r"[^\W_]+$")


class Constants:
    """readers: tensor -> the nodes that read it, each with the place among its inputs."""

    def __init__(self, cut: "GraphCut", weight: Weights) -> None:
        self._cut, self._weight = cut, weight
        self.readers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i, node in enumerate(cut.nodes):
            for slot, name in enumerate(node.input):
                if name:
                    self.readers[name].append((i, slot))

    def scale_behind(self, name: str, tensor: str, slot: int) -> Array | None:
        """The constant factor of a product of codes: of the Mul that takes it, or of the Mul that makes its factor.

        tensor, slot: the operand whose scale it is, and its place.
        """
        for _ in range(_FEW):
            taken = [(self._cut.nodes[i], place) for i, place in self.readers[name]]
            nodes = [(node, place) for node, place in taken if node.op_type in ("Cast", "Mul", "Reshape", "Identity")]
            if not nodes:
                return None
            node, place = nodes[0]
            if node.op_type == "Mul":
                return self._factor(node.input[1 - place], tensor, slot)
            name = node.output[0]
        return None

    def _factor(self, name: str, tensor: str, slot: int, deep: int = _FEW) -> Array | None:
        known = self.const(name)
        if known is not None or name not in self._cut.maker or not deep:
            return None if known is None else known.astype(np.float32)
        node = self._cut.nodes[self._cut.maker[name]]
        if node.op_type not in ("Mul", "Reshape", "Unsqueeze", "Identity", "Cast"):
            return None
        inputs = list(node.input if node.op_type == "Mul" else node.input[:1])
        if slot:
            inputs.reverse()  # of two constants that at the operand's place, unless names say more
        inputs.sort(key=lambda each: -_alike(each, tensor))
        factors = (self._factor(each, tensor, slot, deep - 1) for each in inputs)
        return next((found for found in factors if found is not None), None)

    def linear(self, node: onnx.NodeProto, source: str = "") -> Grid:
        """The grid of QuantizeLinear or DequantizeLinear. ValueError if its scale is made while running."""
        named = {a.name: a.i for a in node.attribute if a.type == onnx.AttributeProto.INT}
        codes = source or (node.input[0] if node.op_type in DEQUANTIZE else "")
        default = "float8_e4m3fn" if "FP8" in node.op_type else "int4" if "INT4" in node.op_type else ""
        grid = self.grid(codes, at(node, 1), at(node, 2), named.get("axis", 1), default=default,
                          block=named.get("block_size", 0), output=named.get("output_dtype", 0))  # fmt: skip
        if grid is None:
            raise ValueError("its scale is made while running")
        return grid

    def grid(
        self, codes: str, scale: str, zero: str, axis: int, known: Array | None = None, *, default: str = "",
        block: int = 0, output: int = 0,
    ) -> Grid | None:  # fmt: skip
        """The grid that these constants say; None if one of them is no constant. known: the scale itself."""
        scales = self.const(scale) if known is None else known
        zeros = self.const(zero) if zero else None
        if scales is None or (zero and zeros is None):
            return None
        held = self.const(codes) if codes else None
        kind = default or ("" if held is None else dtype_name(held))
        kind = kind or ("" if zeros is None else dtype_name(zeros)) or (dtype_name(output) if output else "uint8")
        limits(kind)
        flat = None if zeros is None else zeros.astype(np.float32)
        return Grid(kind, scales.astype(np.float32), flat, axis, block)

    def const(self, name: str) -> Array | None:
        """The value of a weight or constant, None for any other tensor."""
        if name in self._cut.initializers:
            return self._weight(name)
        if name not in self._cut.maker:
            return None
        node = self._cut.nodes[self._cut.maker[name]]
        if node.op_type == "Identity":
            return self.const(node.input[0])
        if node.op_type != "Constant":
            return None
        for a in node.attribute:
            if a.name == "value":
                return self._weight.tensor(a.t)
            if a.name in ("value_float", "value_floats"):
                return np.asarray(onnx.helper.get_attribute_value(a), np.float32)
            if a.name in ("value_int", "value_ints"):
                return np.asarray(onnx.helper.get_attribute_value(a), np.int64)
        return None

    def known_value(self, name: str) -> Array:
        found = self.const(name)
        if found is None:
            raise ValueError(f"{name} is no constant")
        return found


def _alike(one: str, other: str) -> int:
    """How many characters two names have in common at their beginning, as far as whole words go."""
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    found = one[:length]
    goes_on = any(name[length : length + 1].isalnum() for name in (one, other))
    return len(_TO_WORD.sub("", found) if goes_on else found)


def at(node: onnx.NodeProto, slot: int) -> str:
    """The name at a place of a node's inputs, "" where there is none."""
    return str(node.input[slot]) if 0 <= slot < len(node.input) else ""
