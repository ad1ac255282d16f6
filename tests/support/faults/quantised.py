"""Damage to quantised models: a wrong scale, a swapped zero point, a clipped channel, a weight along the wrong axis,
codes of 4 bits that lie the other way round in their bytes, and such that are read by another codebook."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from support.faults.running import Array

KINDS = ("scale", "zero point", "clipped channel", "wrong axis", "nibble order", "codebook")
_FACTORS = (8.0, 4.0, 0.25, 0.125)
_WEIGHTS = {"QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "QGemm": (3, 4, 5), "DequantizeLinear": (0, 1, 2)}


@dataclass(frozen=True)
class Damage:
    """kind: of KINDS. names: nodes of which one should be named. detail: what was done."""

    kind: str
    names: frozenset[str]
    detail: str
    model: onnx.ModelProto


@dataclass(frozen=True)
class _Weight:
    """Names of a quantised weight's parts; axis: of its output channels, 0 of a packed one. node: that reads it. rows:
    a packed one has rows of output channels, rather than no shape."""

    codes: str
    scale: str
    zero: str
    axis: int
    node: onnx.NodeProto
    packed: bool = False
    rows: bool = True


def _bits(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "bits"), 4)


class Planter:
    """Plants into copies of one quantised model. seed: of the choice of places."""

    def __init__(self, model: onnx.ModelProto, seed: int) -> None:
        self.model, self._random = model, np.random.default_rng(seed)
        self._arrays = {tensor.name: tensor for tensor in model.graph.initializer}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        for node in model.graph.node:
            if node.op_type == "Constant":
                self._arrays[node.output[0]] = node.attribute[0].t

    def plants(self, kind: str) -> Iterator[Damage]:
        """Damage of a kind, at random places, without end of tries as long as there are places."""
        make: Callable[[Any], Damage | None] = {
            "scale": self._scale, "zero point": self._zero, "clipped channel": self._clip, "wrong axis": self._axis,
            "nibble order": self._nibbles, "codebook": self._codebook,
        }[kind]  # fmt: skip
        places: list[Any] = list(self._weights())
        if kind in ("scale", "zero point"):
            places += list(self._activations())
        for i in self._random.permutation(len(places)):
            found = make(places[i])
            if found is not None:
                yield found

    def _weights(self) -> Iterator[_Weight]:
        for node in self.model.graph.node:
            at = [str(name) for name in node.input]
            if node.op_type in _WEIGHTS:
                codes, scale, zero = (at[i] if i < len(at) else "" for i in _WEIGHTS[node.op_type])
                if self._dims(codes) > 1 and scale in self._arrays:
                    yield _Weight(codes, scale, zero, self._out_axis(node), node)
            elif node.op_type in ("MatMulInteger", "ConvInteger") and self._dims(at[1]) > 1:
                scale = next((t for t in self._arrays if t == at[1].removesuffix("_quantized") + "_scale"), "")
                if scale:
                    axis = 0 if node.op_type == "ConvInteger" else 1
                    yield _Weight(at[1], scale, at[3] if len(at) > 3 else "", axis, node)
            elif node.op_type == "MatMulNBits":
                yield _Weight(at[1], at[2], at[3] if len(at) > 3 else "", 0, node, packed=True)
            elif node.op_type == "MatMulBnb4":
                yield _Weight(at[1], at[2], "", 0, node, packed=True, rows=False)

    def _activations(self) -> Iterator[tuple[str, str]]:
        """Scale and zero point of what is quantised while the model runs."""
        for node in self.model.graph.node:
            if node.op_type == "QuantizeLinear" and len(node.input) > 2 and self._one(node.input[1]):
                yield node.input[1], node.input[2]
            if node.op_type in ("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul") and self._one(
                node.input[6]
            ):
                yield node.input[6], node.input[7]

    def _one(self, name: str) -> bool:
        return name in self._arrays and int(np.prod(self._arrays[name].dims)) == 1

    def _dims(self, name: str) -> int:
        return len(self._arrays[name].dims) if name in self._arrays else 0

    def _out_axis(self, node: onnx.NodeProto) -> int:
        reader = node
        if node.op_type == "DequantizeLinear":
            reader = next(iter(self._readers.get(node.output[0], [node])))
        if "Conv" in reader.op_type:
            return 0
        turned = any(a.name == "transB" and a.i for a in reader.attribute)
        return 0 if turned or ("MatMul" not in reader.op_type and "Gemm" not in reader.op_type) else 1

    def _array(self, name: str) -> Array:
        return np.array(numpy_helper.to_array(self._arrays[name]))

    def _scale(self, place: Any) -> Damage | None:
        name = place.scale if isinstance(place, _Weight) else place[0]
        scale = self._array(name)
        factor = float(self._random.choice(_FACTORS))
        if scale.size > 1 and self._random.random() < 0.5:
            scale = scale.copy()
            flat = scale.reshape(scale.shape[0], -1)
            row = int(self._random.integers(flat.shape[0]))
            flat[row] *= factor
            return self._at(place, self._done("scale", {name: scale}, f"{name}[{row}] times {factor:g}"))
        found = self._done("scale", {name: (scale * factor).astype(scale.dtype)}, f"{name} times {factor:g}")
        return self._at(place, found)

    def _at(self, place: Any, found: Damage | None) -> Damage | None:
        """A node that reads a weight's codes is where its scale is wrong too, wherever that is multiplied."""
        if found is None or not isinstance(place, _Weight):
            return found
        readers = {node.name for node in self._readers.get(place.codes, [place.node])}
        return replace(found, names=found.names | readers)

    def _zero(self, place: Any) -> Damage | None:
        name = place.zero if isinstance(place, _Weight) else place[1]
        if name not in self._arrays:
            return None
        zero = self._array(name)
        if zero.dtype.kind not in "iu" or zero.dtype.itemsize != 1:
            return None
        if isinstance(place, _Weight) and place.packed:
            moved = zero ^ 0x66
        else:
            low, high = (0, 255) if zero.dtype == np.uint8 else (-128, 127)
            moved = np.where(zero.astype(int) - low > 127, zero.astype(int) - 64, zero.astype(int) + 64)
            moved = np.clip(moved, low, high).astype(zero.dtype)
        return self._done("zero point", {name: moved}, f"{name} from {zero.reshape(-1)[0]} to {moved.reshape(-1)[0]}")

    def _clip(self, place: _Weight) -> Damage | None:
        codes = self._array(place.codes)
        if place.packed and (not place.rows or _bits(place.node) != 4):
            return None
        if place.packed:
            row = int(self._random.integers(codes.shape[0]))
            parts = [np.clip((codes[row] >> shift) & 15, 6, 10) << shift for shift in (0, 4)]
            codes[row] = parts[0] | parts[1]
        else:
            if codes.dtype.kind not in "iu":
                return None
            row = int(self._random.integers(codes.shape[place.axis]))
            middle = 128 if codes.dtype == np.uint8 else 0
            part = np.moveaxis(codes, place.axis, 0)
            reach = np.abs(part[row].astype(int) - middle).max() // 4
            part[row] = np.clip(part[row].astype(int), middle - reach, middle + reach).astype(codes.dtype)
        return self._done(
            "clipped channel", {place.codes: codes}, f"channel {row} of {place.codes} clipped to a quarter"
        )

    def _axis(self, place: _Weight) -> Damage | None:
        scale, codes = self._array(place.scale), self._array(place.codes)
        if place.packed:
            if not place.rows or _bits(place.node) != 4 or codes.shape[0] != codes.shape[1] * codes.shape[2] * 2:
                return None
            return self._packed_along(place, codes, scale)
        if scale.size < 2 or codes.ndim < 2 or codes.dtype.kind not in "iu" or codes.dtype.itemsize != 1:
            return None
        other = 1 - place.axis
        if codes.shape[other] != scale.size:
            return None
        shape = [1] * codes.ndim
        shape[place.axis] = -1
        values = codes.astype(np.float32) * scale.reshape(shape)
        rest = tuple(i for i in range(codes.ndim) if i != other)
        shape[place.axis], shape[other] = 1, -1
        wrong = (np.abs(values).max(axis=rest) / 127 + 1e-12).astype(np.float32)
        moved = np.clip(np.rint(values / wrong.reshape(shape)), -127, 127).astype(codes.dtype)
        return self._done("wrong axis", {place.codes: moved, place.scale: wrong.reshape(scale.shape)},
                          f"{place.codes} quantised along axis {other}")  # fmt: skip

    def _nibbles(self, place: _Weight) -> Damage | None:
        if not place.packed or _bits(place.node) != 4:
            return None
        codes = self._array(place.codes)
        turned = ((codes >> 4) | (codes << 4)).astype(np.uint8)
        return self._done("nibble order", {place.codes: turned}, f"{place.codes} with the halves of its bytes swapped")

    def _codebook(self, place: _Weight) -> Damage | None:
        if place.node.op_type != "MatMulBnb4":
            return None
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        readers = [node for node in model.graph.node if place.codes in node.input]
        for a in (a for node in readers for a in node.attribute if a.name == "quant_type"):
            a.i = 1 - a.i
        names = frozenset(node.name for node in readers)
        return Damage("codebook", names, f"{place.codes} read by another codebook", model)

    def _packed_along(self, place: _Weight, codes: Array, scale: Array) -> Damage:
        """Blocks of the transposed weight's rows."""
        n = codes.shape[0]
        flat = np.stack([codes & 15, codes >> 4], -1).reshape(n, -1).astype(np.float32) - 8
        values = (flat * np.repeat(scale.reshape(n, -1), 32, 1)[:, : flat.shape[1]]).T
        blocks = values.reshape(n, -1, 32)
        wrong = np.abs(blocks).max(-1) / 7 + 1e-12
        turned = np.clip(np.rint(blocks / wrong[..., None]), -8, 7).astype(int) + 8
        turned = turned.reshape(n, -1).T.reshape(n, -1, 32)
        packed = (turned[..., 0::2] | (turned[..., 1::2] << 4)).astype(np.uint8)
        changed = {place.codes: packed, place.scale: wrong.astype(scale.dtype).reshape(scale.shape)}
        return self._done("wrong axis", changed, f"{place.codes} in blocks along the other axis")

    def _done(self, kind: str, changed: dict[str, Array], detail: str) -> Damage | None:
        if all(np.array_equal(self._array(name), array) for name, array in changed.items()):
            return None
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        held = [(tensor, tensor.name) for tensor in model.graph.initializer]
        held += [(node.attribute[0].t, node.output[0]) for node in model.graph.node if node.op_type == "Constant"]
        for tensor, name in held:
            if name in changed:
                tensor.CopyFrom(numpy_helper.from_array(changed[name], tensor.name))
        near = {node.name for name in changed for node in self._readers.get(name, ())}
        made = {out for name in changed for node in self._readers.get(name, ()) for out in node.output}
        near |= {node.name for out in made for node in self._readers.get(out, ()) if self._close(node)}
        return Damage(kind, frozenset(near), detail, model)

    def _close(self, node: onnx.NodeProto) -> bool:
        return node.op_type in ("DequantizeLinear", "Conv", "MatMul", "Gemm", "MatMulInteger", "ConvInteger")
