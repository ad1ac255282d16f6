"""Fake quantisation in numpy: FP32 arrays rounded to what a format can hold, and back in FP32.

Bit-equal to ONNX's QuantizeLinear and DequantizeLinear (and Cast with saturation) and, within range, to ml_dtypes'
casts. Where a value cannot be held, it becomes the largest one (saturation); FP16 and bfloat16 overflow to infinity, as
a cast does. Not-a-number stays so in floats; in integers it is not defined, and stays so here.
"""

from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from layerwise._tool.surgery.quantise.formats import MINI, NV_SCALE, Format, MiniFloat

Floats = NDArray[np.float32]
_PIECE = 1 << 15
_LEAST_SCALE = np.float32(2.0**-126)


class Scale(Struct, frozen=True):
    """How values are laid onto a format's: value = (stored - zero) * scale. Both broadcast with the tensor, or with its
    blocks as `blocked` gives them. For a format of blocks, `scale` is the tensor's own (nv) or not used (mx).
    """

    scale: Floats
    zero: Floats


def dtype_of(element: str) -> np.dtype[Any]:
    """The numpy type of a format's values."""
    return np.dtype(np.float16 if element == "float16" else getattr(ml_dtypes, element))


def cast(array: Floats, element: str) -> Floats:
    """Rounded to a floating type and back; too large values become infinite in FP16 and bfloat16, else the largest."""
    if element in MINI:
        return _mini(np.asarray(array, np.float32), MINI[element])
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype_of(element)).astype(np.float32)


def _mini(array: Floats, mini: MiniFloat) -> Floats:
    """Rounded to a float of few bits, a piece that fits a cache after the other: ml_dtypes' casts take thirty times as
    long.
    """
    found = np.empty(array.shape, np.float32)
    flat, made = np.ascontiguousarray(array).reshape(-1), found.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        _mini_piece(flat[start : start + _PIECE], made[start : start + _PIECE], mini)
    return found


def _mini_piece(values: Floats, made: Floats, mini: MiniFloat) -> None:
    """Normal numbers by their bits: half of the last bit that is kept, and that bit itself for ties, are added before
    the rest is cut off. Others by adding what leaves no bits for less than the smallest one.
    """
    within = np.clip(values, np.float32(-mini.largest), np.float32(mini.largest))
    bits, cut = within.view(np.uint32), np.uint32(23 - mini.mantissa)
    last = bits >> cut
    last &= np.uint32(1)
    last += bits
    last += np.uint32((1 << (22 - mini.mantissa)) - 1)
    last &= np.uint32(0xFFFFFFFF ^ ((1 << (23 - mini.mantissa)) - 1))
    made[:] = last.view(np.float32)
    small = np.abs(within) < np.float32(2.0**mini.lowest)
    if small.any():
        base = np.float32(1.5 * 2.0 ** (23 + mini.lowest - mini.mantissa))
        few = within + base
        few -= base
        np.copyto(made, np.copysign(few, within, out=few), where=small)
    strange = np.isnan(within)
    if strange.any():
        made[strange] = np.nan


def row_largest(parts: Floats) -> Floats:
    """The largest magnitude of each row, one column wide. Halves are compared with each other, which numpy does faster
    than to go along short rows.
    """
    found: Floats = np.abs(parts)
    while found.shape[-1] > 1 and found.shape[-1] % 2 == 0:
        half = found.shape[-1] // 2
        found = np.maximum(found[..., :half], found[..., half:])
    largest: Floats = found.max(axis=-1, keepdims=True, initial=0)
    return largest


def fake(array: Floats, form: Format, scale: Scale | None = None, axis: int = -1, block: int = 0) -> Floats:
    """An array as the format holds it. axis, block: along which values share a scale in blocks, and how many (0: the
    format's own, or none). scale: of integers and FP8, and of the tensor of nv; None: what its own values ask for.
    """
    block = form.block or block
    if form.kind == "half":
        return cast(array, form.element)
    if block:
        parts = blocked(array, axis, block)
        return unblocked(_of_blocks(parts, form, scale), array, axis)
    assert scale is not None
    return _scaled(array, form, scale)


def _scaled(array: Floats, form: Format, scale: Scale) -> Floats:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = np.divide(array, scale.scale, dtype=np.float32)
        if form.kind == "integer":
            np.rint(found, out=found)
            found += scale.zero
            np.clip(found, form.least, form.most, out=found)
            found -= scale.zero
        else:
            found = cast(found, form.element)
        found *= scale.scale
    return found


def _of_blocks(parts: Floats, form: Format, scale: Scale | None) -> Floats:
    if form.kind in ("integer", "float8"):
        assert scale is not None
        return _scaled(parts, form, scale)
    scales = mx_scale(parts, form) if form.kind == "mx" else nv_scale(parts, form, scale)
    some = np.where(scales == 0, np.float32(1), scales)
    found: Floats = cast(np.divide(parts, some, dtype=np.float32), form.element) * scales
    return found


def blocked(array: NDArray[Any], axis: int, block: int) -> NDArray[Any]:
    """The values along `axis` in rows of `block`, the last one of each line filled with zeros."""
    lines = np.moveaxis(array, axis, -1)
    length = lines.shape[-1]
    if length % block:
        lines = np.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(0, -length % block)])
    return np.ascontiguousarray(lines).reshape(-1, block)


def unblocked(parts: NDArray[Any], array: NDArray[Any], axis: int) -> NDArray[Any]:
    """Rows that `blocked` made of `array`, in its shape again."""
    lines = np.moveaxis(array, axis, -1)
    length = lines.shape[-1]
    whole = parts.reshape(*lines.shape[:-1], -1)[..., :length]
    return np.ascontiguousarray(np.moveaxis(whole, -1, axis))


def mx_scale(parts: Floats, form: Format) -> Floats:
    """The scale of each row: the power of two below its largest magnitude, over that of the format's largest value
    (OCP Microscaling Formats 1.0); no smaller than the smallest normal FP32.
    """
    most = row_largest(parts)
    known = np.where(np.isnan(most) | (most <= 0), np.float32(_LEAST_SCALE), np.minimum(most, np.float32(2.0**127)))
    exponent = np.frexp(known)[1] - 1
    scale = np.ldexp(np.float32(1), exponent - MINI[form.element].highest).astype(np.float32)
    return np.asarray(np.maximum(scale, _LEAST_SCALE), np.float32)


def nv_scale(parts: Floats, form: Format, scale: Scale | None) -> Floats:
    """The scale of each row: its largest magnitude over the format's largest value, in FP8 over the tensor's scale."""
    most = row_largest(parts)
    own = nv_tensor_scale(float(most.max(initial=0))) if scale is None else scale.scale
    largest = np.float32(MINI[form.element].largest)
    found: Floats = cast(most / largest / own, NV_SCALE) * own
    return found


def nv_tensor_scale(most: float) -> Floats:
    """NVFP4's scale of a tensor whose largest magnitude is `most`."""
    whole = most / (MINI[NV_SCALE].largest * MINI["float4_e2m1fn"].largest)
    return np.asarray(max(whole, float(_LEAST_SCALE)), np.float32)
