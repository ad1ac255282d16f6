"""Operators of the reference evaluator for FP64: what ONNX's own compute slowly, with too much memory, or in FP32.

A product with a kernel is the sum over the kernel's positions of a product of matrices, so that nothing is unrolled: a
convolution holds its padded input, one shifted copy of it and its output.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from layerwise._tool.backends.arrays import Array

Pads = list[tuple[int, int]]


def window_pads(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], auto: str | None, given: Sequence[int] | None
) -> Pads:
    """The padding before and behind each spatial dimension. kernel: with its dilations."""
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        given = list(given or []) if auto != "VALID" else []
        half = len(sizes)
        return list(zip(given[:half], given[half:], strict=True)) if given else [(0, 0)] * half
    found = []
    for size, length, stride in zip(sizes, kernel, strides, strict=True):
        whole = max(0, (-(-size // stride) - 1) * stride + length - size)
        found.append((whole // 2, whole - whole // 2) if auto == "SAME_UPPER" else (whole - whole // 2, whole // 2))
    return found


class _Window:
    """The positions of a kernel over the spatial dimensions of x [N, C, …].

    up: sizes are rounded up, so that the last position may be partly beyond the padding.
    """

    def __init__(
        self,
        x: Array,
        kernel: Sequence[int],
        strides: Sequence[int] | None,
        dilations: Sequence[int] | None,
        pads: tuple[str | None, Sequence[int] | None],
        *,
        up: bool = False,
    ) -> None:
        ndim = len(kernel)
        self._kernel, self._strides, self._dilations = kernel, strides or [1] * ndim, dilations or [1] * ndim
        wide = [(k - 1) * d + 1 for k, d in zip(kernel, self._dilations, strict=True)]
        self.pads = window_pads(x.shape[2:], wide, self._strides, *pads)
        sizes = [size + before + behind for size, (before, behind) in zip(x.shape[2:], self.pads, strict=True)]
        self.shape, self.beyond = [], []
        for size, real, (before, _), k, s in zip(sizes, x.shape[2:], self.pads, wide, self._strides, strict=True):
            count = (-(-(size - k) // s) if up else (size - k) // s) + 1
            count -= up and (count - 1) * s >= real + before
            self.shape.append(count)
            self.beyond.append(max(0, (count - 1) * s + k - size))

    def pad(self, x: Array, value: float) -> Array:
        """x with its padding."""
        ends = [(before, behind + more) for (before, behind), more in zip(self.pads, self.beyond, strict=True)]
        around = [(0, 0), (0, 0), *ends]
        return np.pad(x, around, constant_values=value) if any(map(any, ends)) else x

    def shifted(self, padded: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
        """Each position in the kernel with what it meets: a view [N, C, *shape]."""
        for place in product(*map(range, self._kernel)):
            parts = [
                slice(at * d, at * d + (n - 1) * s + 1, s)
                for at, d, n, s in zip(place, self._dilations, self.shape, self._strides, strict=True)
            ]
            yield place, padded[(slice(None), slice(None), *parts)]


class Conv(OpRun):
    """A product of matrices for each position in the kernel."""

    op_domain = ""

    def _run(
        self, x: Array, w: Array, b: Array | None = None, auto_pad: Any = None, dilations: Any = None, group: Any = 1,
        kernel_shape: Any = None, pads: Any = None, strides: Any = None,
    ) -> tuple[Array]:  # fmt: skip
        groups = group or 1
        window = _Window(x, w.shape[2:], strides, dilations, (auto_pad, pads))
        n, c, m = x.shape[0], x.shape[1], w.shape[0]
        padded, count = window.pad(x, 0), math.prod(window.shape)
        out = np.zeros((n, groups, m // groups, count), np.result_type(x, w))
        kernel = w.reshape(groups, m // groups, c // groups, -1)
        for place, (_, seen) in enumerate(window.shifted(padded)):
            matrix = kernel[..., place]
            part = np.ascontiguousarray(seen).reshape(n, groups, c // groups, count)
            out += matrix * part if c == groups else matrix @ part
        y = out.reshape(n, m, *window.shape)
        return (y if b is None else y + b.reshape(-1, *[1] * len(window.shape)),)


class AveragePool(OpRun):
    """A sum over the positions in the kernel."""

    op_domain = ""

    def _run(
        self, x: Array, auto_pad: Any = None, ceil_mode: Any = None, count_include_pad: Any = None,
        dilations: Any = None, kernel_shape: Any = None, pads: Any = None, strides: Any = None,
    ) -> tuple[Array]:  # fmt: skip
        window = _Window(x, kernel_shape, strides, dilations, (auto_pad, pads), up=bool(ceil_mode))
        total: Any = sum(seen for _, seen in window.shifted(window.pad(x, 0)))
        inside = np.ones((1, 1, *x.shape[2:]))
        if count_include_pad:
            inside = np.pad(inside, [(0, 0), (0, 0), *window.pads], constant_values=1)
            inside = np.pad(inside, [(0, 0), (0, 0), *((0, more) for more in window.beyond)])
        else:
            inside = window.pad(inside, 0)
        count: Any = sum(seen for _, seen in window.shifted(inside))
        return (total / count,)


class MaxPool(OpRun):
    """The largest over the positions in the kernel; it does not tell where that is."""

    op_domain = ""

    def _run(
        self, x: Array, auto_pad: Any = None, ceil_mode: Any = None, dilations: Any = None, kernel_shape: Any = None,
        pads: Any = None, storage_order: Any = None, strides: Any = None,
    ) -> tuple[Array]:  # fmt: skip
        if len(self.onnx_node.output) > 1:
            raise NotImplementedError("where the largest elements are is not told")
        window = _Window(x, kernel_shape, strides, dilations, (auto_pad, pads), up=bool(ceil_mode))
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        views = window.shifted(window.pad(x, lowest))
        out = next(views)[1].copy()
        for _, seen in views:
            np.maximum(out, seen, out=out)
        return (out,)


class Erf(OpRun):
    """The error function, to the last bits of FP64."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (_erf(x),)


def _erf(x: Array) -> Array:
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


class Gelu(OpRun):
    """x Phi(x), or its approximation by tanh."""

    op_domain = ""

    def _run(self, x: Array, approximate: Any = None) -> tuple[Array]:
        if approximate == "tanh":
            return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)
        return (0.5 * x * (1 + _erf(x / math.sqrt(2))),)


class DequantizeLinear(OpRun):
    """(x - zero point) times scale, per tensor, along an axis or in blocks."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, zero_point: Array | None = None, axis: Any = 1, block_size: Any = 0,
        output_dtype: Any = None,
    ) -> tuple[Array]:  # fmt: skip
        wide = x.astype(np.float64)
        if zero_point is not None:
            wide -= _spread(zero_point.astype(np.float64), x, axis, block_size)
        return (wide * _spread(scale, x, axis, block_size),)


def _spread(values: Array, x: Array, axis: int | None, block: int | None) -> Array:
    """Scales or zero points of the shape of x, or ready to be broadcast to it."""
    if values.size == 1:
        return values.reshape(())
    place = (1 if axis is None else axis) % x.ndim
    if block:
        return np.repeat(values, block, axis=place)[tuple(slice(0, size) for size in x.shape)]
    return values.reshape([-1 if dim == place else 1 for dim in range(x.ndim)])


DOUBLE_OPS: tuple[type, ...] = (Conv, AveragePool, MaxPool, Erf, Gelu, DequantizeLinear)
"""To be given to `backends.reference.evaluate.Evaluation`."""
