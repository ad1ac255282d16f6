"""NumPy implementations of common TensorRT plugins.

Semantics: the READMEs and sources of the plugins in NVIDIA/TensorRT (plugin/), TensorRT 10. Each function takes the
node's attributes and inputs and returns its one output, of the first input's type.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError

Attributes = Mapping[str, Any]
Plugin = Callable[..., Array]

PLUGINS: dict[str, Plugin] = {}


def _plugin(*names: str) -> Callable[[Plugin], Plugin]:
    def add(function: Plugin) -> Plugin:
        PLUGINS.update(dict.fromkeys(names, function))
        return function

    return add


def _vector(attributes: Attributes, name: str, given: Array | None = None) -> Array:
    """Return a per-channel parameter: an input of the node, or else an attribute (a tensor or a list of floats)."""
    value = attributes.get(name) if given is None else given
    if value is None:
        raise LayerwiseError(f"it lacks its parameter {name!r}, as an input or as an attribute")
    return np.asarray(value, np.float32).reshape(-1)


def _along(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


def _normalised(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    wide = x.astype(np.float32)
    mean = wide.mean(axes, keepdims=True)
    return np.asarray((wide - mean) / np.sqrt(wide.var(axes, keepdims=True) + np.float32(epsilon)))


@_plugin("InstanceNormalization_TRT")
def instance_normalization(
    attributes: Attributes, x: Array, scale: Array | None = None, bias: Array | None = None
) -> Array:
    """x [N, C, …]; `relu` (with the slope `alpha`) may be fused."""
    normal = _normalised(x, tuple(range(2, x.ndim)), attributes.get("epsilon", 1e-5))
    y = normal * _along(_vector(attributes, "scales", scale), 1, x.ndim)
    y = y + _along(_vector(attributes, "bias", bias), 1, x.ndim)
    if attributes.get("relu", 0):
        y = np.where(y < 0, y * attributes.get("alpha", 0.0), y)
    return y.astype(x.dtype)


@_plugin("GroupNormalizationPlugin")
def group_normalization(attributes: Attributes, x: Array, scale: Array, bias: Array) -> Array:
    """x [N, C, …], scale and bias [C]; `num_groups` divides C."""
    groups = attributes.get("num_groups", 1)
    grouped = x.reshape(x.shape[0], groups, -1)
    normal = _normalised(grouped, (2,), attributes.get("epsilon", 1e-5)).reshape(x.shape)
    y = normal * _along(scale.reshape(-1), 1, x.ndim) + _along(bias.reshape(-1), 1, x.ndim)
    return y.astype(x.dtype)


@_plugin("LayerNorm")
def layer_normalization(attributes: Attributes, x: Array, gamma: Array, beta: Array) -> Array:
    """Over the last dimension; gamma and beta have its length."""
    normal = _normalised(x, (-1,), attributes.get("epsilon", 1e-5))
    return np.asarray(normal * gamma.reshape(-1) + beta.reshape(-1)).astype(x.dtype)


@_plugin("CustomSkipLayerNormPluginDynamic")
def skip_layer_normalization(attributes: Attributes, x: Array, skip: Array) -> Array:
    """x and skip [S, B, E, 1, 1] (versions 1 and 2) or [1, E, S, 1] (versions 3 and 4)."""
    axis = 2 if str(_text(attributes.get("plugin_version", "1"))) in ("1", "2") else 1
    total = x.astype(np.float32) + skip
    if attributes.get("bias") is not None:
        total = total + _along(_vector(attributes, "bias"), axis, x.ndim)
    normal = _normalised(total, (axis,), 1e-5)
    y = normal * _along(_vector(attributes, "gamma"), axis, x.ndim)
    return (y + _along(_vector(attributes, "beta"), axis, x.ndim)).astype(x.dtype)


@_plugin("CustomGeluPluginDynamic")
def gelu(attributes: Attributes, x: Array) -> Array:
    """The tanh approximation; an optional `bias` along dimension 2 is added first."""
    wide = x.astype(np.float32)
    if attributes.get("bias") is not None:
        wide = wide + _along(_vector(attributes, "bias"), 2, x.ndim)
    inner = np.sqrt(np.float32(2 / np.pi)) * (wide + np.float32(0.044715) * wide**3)
    return np.asarray(0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype)


@_plugin("LReLU_TRT")
def leaky_relu(attributes: Attributes, x: Array) -> Array:
    """Negative values times `negSlope`."""
    return np.where(x < 0, x * x.dtype.type(attributes.get("negSlope", 0.1)), x)


@_plugin("Mish_TRT")
def mish(attributes: Attributes, x: Array) -> Array:
    """x · tanh(softplus(x))."""
    wide = x.astype(np.float32)
    return np.asarray(wide * np.tanh(np.logaddexp(0, wide))).astype(x.dtype)


@_plugin("Clip_TRT")
def clip(attributes: Attributes, x: Array) -> Array:
    """Between `clipMin` and `clipMax`."""
    return np.clip(x, attributes.get("clipMin", -np.inf), attributes.get("clipMax", np.inf)).astype(x.dtype)


@_plugin("Normalize_TRT")
def l2_normalize(attributes: Attributes, x: Array, weights: Array | None = None) -> Array:
    """x [N, C, H, W] over channels, or over all but N with `acrossSpatial`; times one weight or one a channel."""
    wide = x.astype(np.float32)
    axes = (1, 2, 3) if attributes.get("acrossSpatial", 1) else (1,)
    norm = np.sqrt((wide**2).sum(axes, keepdims=True) + np.float32(attributes.get("eps", 1e-10)))
    scale = _along(_vector(attributes, "weights", weights), 1, x.ndim)
    return np.asarray(wide / norm * scale).astype(x.dtype)


@_plugin("Reorg_TRT")
def reorg(attributes: Attributes, x: Array) -> Array:
    """x [N, C, H, W] → [N, C·s², H/s, W/s], in the order of Darknet's backward reorg layer (YOLOv2)."""
    s = attributes["stride"]
    n, c, h, w = x.shape
    if c % s**2 or h % s or w % s:
        raise LayerwiseError(f"a stride of {s} does not fit the shape {list(x.shape)}")
    cells = x.reshape(n, c // s**2, h, s, w, s)  # remaining channels, rows, row in cell, columns, column in cell
    return cells.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * s**2, h // s, w // s)


@_plugin("CoordConvAC")
def coordinate_channels(attributes: Attributes, x: Array) -> Array:
    """x [N, C, H, W] → [N, C + 2, H, W]: row and column coordinates from -1 to 1 as two more channels."""
    n, _, h, w = x.shape
    rows = np.broadcast_to(np.linspace(-1, 1, h, dtype=x.dtype)[:, None], (n, 1, h, w))
    columns = np.broadcast_to(np.linspace(-1, 1, w, dtype=x.dtype), (n, 1, h, w))
    return np.concatenate([x, rows, columns], axis=1)


@_plugin("ResizeNearest_TRT")
def resize_nearest(attributes: Attributes, x: Array) -> Array:
    """x [N, C, H, W]; both sizes times `scale`, rounded down; nearest value to the upper left."""
    scale = attributes["scale"]
    rows, columns = (np.floor(np.arange(int(size * scale)) / scale).astype(int) for size in x.shape[2:])
    return x[:, :, rows[:, None], columns]


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
