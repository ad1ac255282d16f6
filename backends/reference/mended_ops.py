"""Operators in place of ONNX's own where these fail."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_conv, op_conv_integer, op_dequantize_linear, op_grid_sample, op_qlinear_conv

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.reference.double_ops import window_pads
from layerwise._tool.backends.reference.recurrent_ops import RECURRENT_OPS

_DEQUANTIZE: Any = next(
    found for opset in (25, 23, 21, 19)
    if (found := getattr(op_dequantize_linear, f"DequantizeLinear_{opset}", None)) is not None
)  # fmt: skip

try:  # onnx before 1.23
    from onnx.reference.ops_optimized import Conv as _CONV
except ImportError:
    _CONV = op_conv.Conv


class GatherElements(OpRun):
    """ONNX's own fails where it takes one element of each row."""

    op_domain = ""

    def _run(self, data: Array, indices: Array, axis: Any = 0) -> tuple[Array]:
        places = np.where(indices < 0, indices + data.shape[axis or 0], indices)
        before = [slice(0, size) for size in indices.shape]
        before[axis or 0] = slice(None)
        return (np.take_along_axis(data[tuple(before)], places, axis or 0),)


class BatchNormalization(OpRun):
    """ONNX's own of opsets before 14 mixes the statistics of the batch into those of the model."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, bias: Array, mean: Array, var: Array,
        epsilon: Any = None, momentum: Any = None, training_mode: Any = None, is_test: Any = None, spatial: Any = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        epsilon, momentum = (1e-5 if epsilon is None else epsilon), (0.9 if momentum is None else momentum)
        running, axes = (mean, var), tuple(axis for axis in range(x.ndim) if axis != 1)
        trains = training_mode or len(self.onnx_node.output) > 1
        if trains:
            mean, var = x.mean(axes), x.var(axes)
        wide = [part.reshape(-1, *[1] * (x.ndim - 2)) for part in (scale, bias, mean, var)]
        y = (wide[0] * (x - wide[2]) / np.sqrt(wide[3] + epsilon) + wide[1]).astype(x.dtype)
        moved = (old * momentum + new * (1 - momentum) for old, new in zip(running, (mean, var), strict=True))
        return (y, *(part.astype(old.dtype) for part, old in zip(moved, running, strict=True))) if trains else (y,)


class LayerNormalization(OpRun):
    """ONNX's own squares in the type of its input, where FP16 overflows, whatever type `stash_type` asks for."""

    op_domain = ""

    def _run(
        self, x: Array, scale: Array, bias: Any = None, axis: Any = -1, epsilon: Any = 1e-5, stash_type: Any = 1
    ) -> tuple[Array, ...]:
        wide = x.astype(np.float32) if stash_type == 1 and x.dtype.itemsize < 4 else x
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean = wide.mean(axes, keepdims=True)
        inverse = 1 / np.sqrt(np.square(wide - mean).mean(axes, keepdims=True) + wide.dtype.type(epsilon))
        y = ((wide - mean) * inverse).astype(x.dtype) * scale
        found = ((y if bias is None else y + bias).astype(x.dtype), mean, inverse.astype(wide.dtype))
        return found[: len(self.onnx_node.output)]


class LRN(OpRun):
    """ONNX's own adds up the squares of as many channels as the batch has rows."""

    op_domain = ""

    def _run(self, x: Array, alpha: Any = None, beta: Any = None, bias: Any = None, size: Any = None) -> tuple[Array]:
        squares, total = x.astype(np.float64) ** 2, np.zeros(x.shape)
        for c in range(x.shape[1]):
            total[:, c] = squares[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].sum(1)
        return ((x / (bias + alpha / size * total) ** beta).astype(x.dtype),)


class GridSample(OpRun):
    """ONNX's own knows the modes by the names that they have since opset 20 alone."""

    op_domain = ""

    def _run(
        self, x: Array, grid: Array, mode: Any = None, padding_mode: Any = None, align_corners: Any = None
    ) -> tuple[Array]:
        own: Any = op_grid_sample.GridSample(self.onnx_node, self.run_params)
        found: tuple[Array] = own._run(x, grid, (mode or "linear").removeprefix("bi"), padding_mode, align_corners)
        return found


class DequantizeLinear(OpRun):
    """ONNX's own has none for opsets before 19; the newest that it has is taken for all."""

    op_domain = ""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array]:
        own: Any = _DEQUANTIZE(self.onnx_node, self.run_params)
        found: tuple[Array] = own._run(*inputs, **attributes)
        return found


class _Convolution(OpRun):
    """ONNX's own before 1.23 take N and C for the lengths that `auto_pad` is about, and pad for VALID.

    own: the operator; weight: where it takes its weight.
    """

    op_domain = ""
    own: Any
    weight: int

    def _run(self, *inputs: Array, auto_pad: Any = None, pads: Any = None, **attributes: Any) -> tuple[Array]:
        if auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER"):
            sizes, kernel = inputs[0].shape[2:], inputs[self.weight].shape[2:]
            ones = [1] * len(kernel)
            steps, apart = attributes.get("strides") or ones, attributes.get("dilations") or ones
            wide = [(length - 1) * step + 1 for length, step in zip(kernel, apart, strict=True)]
            found = window_pads(sizes, wide, steps, auto_pad, None)
            auto_pad, pads = "NOTSET", [*(before for before, _ in found), *(behind for _, behind in found)]
        own: Any = self.own(self.onnx_node, self.run_params)
        made: tuple[Array] = own._run(*inputs, auto_pad=auto_pad, pads=pads, **attributes)
        return made


_OWN = {} if _CONV is op_conv.Conv else {_CONV: 1, op_conv_integer.ConvInteger: 1, op_qlinear_conv.QLinearConv: 3}
MENDED_OPS: tuple[type, ...] = (
    *(GatherElements, BatchNormalization, LayerNormalization, LRN, GridSample, DequantizeLinear),
    *(type(own.__name__, (_Convolution,), {"own": own, "weight": weight}) for own, weight in _OWN.items()),
    *RECURRENT_OPS,
)
