"""Fake quantisation as nodes that compute in FP32, which any runner has: Div, Round, Min, Max, Mul, Where, Gather.

Bit-equal to `surgery.quantise.numeric.fake`. FP16 and bfloat16 are casts.
"""

import numpy as np
from onnx import TensorProto

from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import MINI, NV_SCALE, Format

LEAST_OPSET = 13
"""Round has it since 11, Cast to bfloat16 since 13."""
_CASTS = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
_LOG2 = np.float32(1 / np.log(2))
_NORMAL = -126


def fake_nodes(
    made: Emitter, name: str, form: Format, scale: str = "", zero: str = "", *, axis: int = -1, rank: int = 0
) -> str:
    """Add nodes that give tensor `name` as the format holds it; the result's name.

    scale, zero: tensors that broadcast with it (integers, FP8), or the tensor's own scale (nv); axis, rank: along which
    blocks lie, and the tensor's rank (mx, nv).
    """
    if form.kind == "half":
        return made.op("Cast", made.op("Cast", name, to=_CASTS[form.element]), to=TensorProto.FLOAT)
    if form.kind == "integer":
        return _integer(made, name, form, scale, zero)
    if form.kind == "float8":
        return made.op("Mul", mini_nodes(made, made.op("Div", name, scale), form.element), scale)
    return _in_blocks(made, name, form, scale, axis % rank, rank)


def _integer(made: Emitter, name: str, form: Format, scale: str, zero: str) -> str:
    moved = made.op("Add", made.op("Round", made.op("Div", name, scale)), zero)
    held = made.op("Max", made.op("Min", moved, made.constant(form.most)), made.constant(form.least))
    return made.op("Mul", made.op("Sub", held, zero), scale)


def mini_nodes(made: Emitter, name: str, element: str) -> str:
    """Add nodes that round FP32 to a float of few bits, with saturation; the result's name."""
    mini = MINI[element]
    within = made.op("Max", made.op("Min", name, made.constant(mini.largest)), made.constant(-mini.largest))
    step = made.op("Mul", _power(made, within, mini.lowest, mini.highest), made.constant(2.0**-mini.mantissa))
    return made.op("Mul", made.op("Round", made.op("Div", within, step)), step)


def _power(made: Emitter, name: str, lowest: int, highest: int) -> str:
    """The power of two at or below a magnitude, within two exponents. The logarithm only guesses: it is put right."""
    size = made.op("Abs", name)
    least = 2.0**lowest
    guess = made.op("Floor", made.op("Mul", made.op("Log", made.op("Max", size, made.constant(least))),
                                     made.constant(_LOG2)))  # fmt: skip
    known = made.op("Where", made.op("IsNaN", guess), made.constant(lowest), guess)
    at = made.op("Sub", made.op("Max", made.op("Min", known, made.constant(highest)), made.constant(lowest)),
                 made.constant(lowest))  # fmt: skip
    powers = made.constant([2.0**k for k in range(lowest, highest + 1)])
    power = made.op("Gather", powers, made.op("Cast", at, to=TensorProto.INT64))
    lower = made.op("Max", made.op("Mul", power, made.constant(0.5)), made.constant(least))
    power = made.op("Where", made.op("Less", size, power), lower, power)
    twice = made.op("Min", made.op("Mul", power, made.constant(2.0)), made.constant(2.0**highest))
    return made.op("Where", made.op("Less", size, twice), power, twice)


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
    most = made.largest(made.op("Abs", rows), [1])
    scales = _mx_scale(made, most, form) if form.kind == "mx" else _nv_scale(made, most, form, scale)
    some = made.op("Where", made.op("Equal", scales, made.constant(0.0)), made.constant(1.0), scales)
    held = made.op("Mul", mini_nodes(made, made.op("Div", rows, some), form.element), scales)
    whole = made.op("Reshape", held, made.op("Shape", padded))
    whole = made.op("Slice", whole, made.constant([0], np.int64), length, made.constant([rank - 1], np.int64))
    back = [order.index(i) for i in range(rank)]
    return made.op("Transpose", whole, perm=back) if axis != rank - 1 else whole


def _mx_scale(made: Emitter, most: str, form: Format) -> str:
    highest = MINI[form.element].highest
    power = _power(made, most, _NORMAL + highest, 127)
    return made.op("Mul", power, made.constant(2.0**-highest))


def _nv_scale(made: Emitter, most: str, form: Format, scale: str) -> str:
    own = made.op("Div", made.op("Div", most, made.constant(MINI[form.element].largest)), scale)
    return made.op("Mul", mini_nodes(made, own, NV_SCALE), scale)
