"""Weights that are packed in blocks: MatMulNBits, MatMulBnb4 and GatherBlockQuantized."""

from collections.abc import Callable

import numpy as np
import onnx
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.codebooks import BOOKS
from layerwise._tool.debugtools.compare.quantised.grid import Grid

Const = Callable[[str], Array | None]


class BlockWeight(Struct, frozen=True, eq=False):
    """codes: gives them unpacked, of `shape`. MatMulNBits: output channels first (N, K)."""

    tensor: str
    grid: Grid
    shape: tuple[int, ...]
    codes: Callable[[], Array]


def block_weight(node: onnx.NodeProto, const: Const) -> BlockWeight:
    """The weight of such a node. ValueError if its parts are no constants or do not fit."""
    named = {a.name: a.i for a in node.attribute if a.type == onnx.AttributeProto.INT}
    if node.op_type == "MatMulBnb4":
        return _looked_up(node, named, const)
    return _gathered(node, named, const) if node.op_type == "GatherBlockQuantized" else _product(node, named, const)


def _product(node: onnx.NodeProto, named: dict[str, int], const: Const) -> BlockWeight:
    k, n, block, bits = (named.get(name, 4 if name == "bits" else 0) for name in ("K", "N", "block_size", "bits"))
    packed, scales = _given(node, 1, const), _given(node, 2, const)
    blocks = -(-k // block)
    zeros = const(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    scale = scales.astype(np.float32).reshape(n, blocks)
    zero = np.full((n, blocks), 2.0 ** (bits - 1), np.float32)
    if zeros is not None:
        zero = _zeros(zeros, n, blocks, bits)
    order = const(node.input[4]) if len(node.input) > 4 and node.input[4] else None
    grid = Grid(f"uint{bits}", scale, zero, 1, block)
    if order is not None and not np.array_equal(order, np.arange(k) // block):
        grid = Grid(f"uint{bits}", scale, zero, 1, groups=order.astype(np.int64))
    return BlockWeight(
        node.input[1], grid, (n, k), lambda: unpacked(packed.reshape(n, -1), bits)[:, : blocks * block][:, :k]
    )


def _looked_up(node: onnx.NodeProto, named: dict[str, int], const: Const) -> BlockWeight:
    """bitsandbytes' codes, the first of two in the high bits, over the largest value of a block; blocks are of all
    values in their order, and go on from one row to the next where these are no multiple of them.
    """
    k, n, block = (named.get(name, 0) for name in ("K", "N", "block_size"))
    packed, largest = _given(node, 1, const), _given(node, 2, const).astype(np.float32)
    kind = "nf4" if named.get("quant_type", 1) else "fp4"
    if block < 1:
        raise ValueError(f"its blocks have {block} values")
    if k % block:
        grid = Grid(kind, largest.reshape(-1), block=block, across=True)
    else:
        grid = Grid(kind, largest.reshape(n, k // block), None, 1, block)

    def levels() -> Array:
        data = packed.view(np.uint8).reshape(-1)
        codes = np.stack([data >> 4, data & 15], -1).reshape(-1)[: n * k]
        return np.asarray(BOOKS[kind][codes].reshape(n, k))

    return BlockWeight(node.input[1], grid, (n, k), levels)


def _gathered(node: onnx.NodeProto, named: dict[str, int], const: Const) -> BlockWeight:
    data, scales = _given(node, 0, const), _given(node, 2, const)
    axis, block, bits = named.get("quantize_axis", 1), named.get("block_size", 128), named.get("bits", 4)
    axis %= data.ndim
    zeros = const(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    packed = data.dtype == np.uint8 and bits < 8
    kind = f"uint{bits}" if packed or data.dtype.kind == "u" or "uint" in str(data.dtype) else f"int{bits}"
    shape = (*data.shape[:-1], data.shape[-1] * (8 // bits)) if packed else data.shape
    zero = None
    if zeros is not None:
        held = unpacked(zeros.reshape(-1, zeros.shape[-1]), bits).reshape(*zeros.shape[:-1], -1) if packed else zeros
        zero = held[..., : scales.shape[-1]].astype(np.float32)
    elif kind.startswith("u"):
        zero = np.full(scales.shape, 2.0 ** (bits - 1), np.float32)

    def codes() -> Array:
        return unpacked(data.reshape(-1, data.shape[-1]), bits).reshape(shape) if packed else data

    return BlockWeight(node.input[0], Grid(kind, scales.astype(np.float32), zero, axis, block), shape, codes)


def _given(node: onnx.NodeProto, slot: int, const: Const) -> Array:
    found = const(node.input[slot])
    if found is None:
        raise ValueError(f"its input {slot} is no constant")
    return found


def _zeros(zeros: Array, n: int, blocks: int, bits: int) -> Array:
    if zeros.dtype != np.uint8:
        return zeros.astype(np.float32).reshape(n, blocks)
    return unpacked(zeros.reshape(n, -1), bits)[:, :blocks].astype(np.float32)


def unpacked(packed: Array, bits: int) -> Array:
    """Codes of fewer than 8 bits that lie in bytes, the lowest bits first, of each row."""
    data = packed.view(np.uint8)
    if bits == 8:
        return data
    parts = [(data >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(data.shape[0], -1)
