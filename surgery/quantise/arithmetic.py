"""Fake quantisation as nodes that compute in FP32, which any runner has: Div, Round, Min, Max, Mul, Where, Less.

Bit-equal to `surgery.quantise.numeric.fake`. FP16 and bfloat16 are casts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import MINI, NV_SCALE, Format, MiniFloat

LEAST_OPSET = 13
"""Round has it since 11, Cast to bfloat16 since 13."""
_CASTS = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
_SPLIT = {np.float32: 2.0**23 + 1, np.float64: 2.0**52 + 1}
_NORMAL = -126
_FEW = 2  # exponents that are told apart by comparing
Dims = Sequence[int | None]


def fake_nodes(
    made: Emitter, name: str, form: Format, scale: str = "", zero: str = "", *, axis: int = -1, dims: Dims = ()
) -> str:
    """Add nodes that give tensor `name` as the format holds it; the result's name.

    scale, zero: tensors that broadcast with it (integers, FP8), or the tensor's own scale (nv); axis, dims: along which
    blocks lie, and the tensor's lengths, None where it is not always the same (mx, nv).
    """
    if form.kind == "half":
        return made.op("Cast", made.op("Cast", name, to=_CASTS[form.element]), to=TensorProto.FLOAT)
    if form.kind == "integer":
        return _integer(made, name, form, scale, zero)
    if form.kind == "float8":
        return made.op("Mul", mini_nodes(made, made.op("Div", name, scale), form.element), scale)
    axis %= len(dims)
    whole = dims[axis]
    if whole and whole % form.block == 0:
        return _in_whole_blocks(made, name, form, scale, axis, dims)
    return _in_blocks(made, name, form, scale, axis, len(dims))


def _integer(made: Emitter, name: str, form: Format, scale: str, zero: str) -> str:
    moved = made.op("Add", made.op("Round", made.op("Div", name, scale)), zero)
    held = made.op("Max", made.op("Min", moved, made.constant(form.most)), made.constant(form.least))
    return made.op("Mul", made.op("Sub", held, zero), scale)


def mini_nodes(made: Emitter, name: str, element: str) -> str:
    """Add nodes that round FP32 to a float of few bits, with saturation; the result's name."""
    mini = MINI[element]
    within = made.op("Max", made.op("Min", name, made.constant(mini.largest)), made.constant(-mini.largest))
    step = _step(made, within, mini)
    return made.op("Mul", made.op("Round", made.op("Div", within, step)), step)


def _step(made: Emitter, within: str, mini: MiniFloat) -> str:
    """The distance of the format's values around each value."""
    size, unit = made.op("Abs", within), 2.0**-mini.mantissa
    if mini.highest - mini.lowest > _FEW:
        return made.op("Mul", _power(made, size, 2.0**mini.lowest), made.constant(unit))
    step = made.constant(2.0**mini.highest * unit)
    for exponent in range(mini.highest, mini.lowest, -1):
        below = made.constant(2.0 ** (exponent - 1) * unit)
        step = made.op("Where", made.op("Less", size, made.constant(2.0**exponent)), below, step)
    return step


def _power(made: Emitter, size: str, least: float, kind: Any = np.float32) -> str:
    """The power of two at or below magnitudes, no smaller than `least`.

    Veltkamp's splitting gives the nearest number of one bit, a power of two; where that is above, half of it is meant.
    """
    held = made.op("Max", size, made.constant(least, kind))
    apart = made.op("Mul", held, made.constant(_SPLIT[kind], kind))
    nearest = made.op("Sub", apart, made.op("Sub", apart, held))
    half = made.op("Mul", nearest, made.constant(0.5, kind))
    return made.op("Where", made.op("Less", held, nearest), half, nearest)


def _in_whole_blocks(made: Emitter, name: str, form: Format, scale: str, axis: int, dims: Dims) -> str:
    """Blocks that fill the axis: nothing is moved or filled up."""
    block, length = form.block, dims[axis] or 0
    shape = [0] * axis + [length // block, block] + ([-1] if axis < len(dims) - 1 else [])
    rows = made.op("Reshape", name, made.constant(shape, np.int64))
    held = _rounded_rows(made, rows, form, scale, axis + 1)
    return made.op("Reshape", held, made.op("Shape", name))


def _in_blocks(made: Emitter, name: str, form: Format, scale: str, axis: int, rank: int) -> str:
    order = [i for i in range(rank) if i != axis] + [axis]
    lines = made.op("Transpose", name, perm=order) if axis != rank - 1 else name
    shape = made.op("Shape", lines)
    length = made.op("Slice", shape, made.constant([rank - 1], np.int64), made.constant([rank], np.int64))
    block = made.constant([form.block], np.int64)
    lacking = made.op("Mod", made.op("Sub", block, made.op("Mod", length, block)), block)
    pads = made.op("Concat", made.constant([0] * (2 * rank - 1), np.int64), lacking, axis=0)
    padded = made.op("Pad", lines, pads, made.constant(0.0))
    rows = made.op("Reshape", padded, made.constant([-1, form.block], np.int64))
    whole = made.op("Reshape", _rounded_rows(made, rows, form, scale, 1), made.op("Shape", padded))
    whole = made.op("Slice", whole, made.constant([0], np.int64), length, made.constant([rank - 1], np.int64))
    back = [order.index(i) for i in range(rank)]
    return made.op("Transpose", whole, perm=back) if axis != rank - 1 else whole


def _rounded_rows(made: Emitter, rows: str, form: Format, scale: str, axis: int) -> str:
    most = made.largest(made.op("Abs", rows), [axis])
    if form.kind == "mx":
        scales = some = _mx_scale(made, most, form)
    else:
        scales = _nv_scale(made, most, form, scale)
        some = made.op("Where", made.op("Equal", scales, made.constant(0.0)), made.constant(1.0), scales)
    return made.op("Mul", mini_nodes(made, made.op("Div", rows, some), form.element), scales)


def _mx_scale(made: Emitter, most: str, form: Format) -> str:
    """In FP64, where splitting does not overflow; what is not a number has the smallest scale."""
    known = made.op("Where", made.op("IsNaN", most), made.constant(0.0), made.op("Min", most, made.constant(2.0**127)))
    wide = made.op("Cast", known, to=TensorProto.DOUBLE)
    power = _power(made, wide, 2.0 ** (_NORMAL + MINI[form.element].highest), np.float64)
    scale = made.op("Mul", power, made.constant(2.0 ** -MINI[form.element].highest, np.float64))
    return made.op("Cast", scale, to=TensorProto.FLOAT)


def _nv_scale(made: Emitter, most: str, form: Format, scale: str) -> str:
    own = made.op("Div", made.op("Div", most, made.constant(MINI[form.element].largest)), scale)
    return made.op("Mul", mini_nodes(made, own, NV_SCALE), scale)
