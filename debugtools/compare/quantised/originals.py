"""Finds the float original of a quantised weight: by name, else by what it correlates with."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.quantised.sites import BROKEN, Site
from layerwise._tool.debugtools.compare.quantised.weights import Weights

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

Way = Literal["plain", "turned", "folded"]
_ENDS = re.compile(r"(_quantized|_q\d+(g\d+)?|_quant|_bnb4|_(De)?QuantizeLinear(_Output)?|_dq|_packed)$", re.IGNORECASE)
_SAMPLE = 4096
_ALIKE, _CLEAR = 0.3, 0.05
_FEW = 8  # elements that tell nothing


class Originals:
    """The floating weights of another model. weight: gives an initializer's value; read_there: what the nodes of that
    model read that make what a quantised weight's readers make.
    """

    def __init__(
        self, cut: "GraphCut", weight: Weights, read_there: Callable[[Site], Iterable[str]] = lambda site: ()
    ) -> None:
        self._cut, self._weight, self._read_there = cut, weight, read_there
        self._samples: dict[tuple[str, bool], Array] = {}

    @cached_property
    def _floating(self) -> dict[str, tuple[int, ...]]:
        found = {name: tuple(tensor.dims) for name, tensor in self._cut.initializers.items()
                 if is_floating(dtype_name(int(tensor.data_type)))}  # fmt: skip
        found |= {name: tuple(tensor.dims) for name, tensor in self._constants.items()
                  if is_floating(dtype_name(int(tensor.data_type)))}  # fmt: skip
        return {name: dims for name, dims in found.items() if np.prod(dims) > 0}

    @cached_property
    def _constants(self) -> dict[str, onnx.TensorProto]:
        nodes = [node for node in self._cut.nodes if node.op_type == "Constant"]
        return {node.output[0]: a.t for node in nodes for a in node.attribute if a.name == "value"}

    @cached_property
    def _folded(self) -> dict[str, Array]:
        """By weight: what the BatchNormalization behind its Conv multiplies each output channel by."""
        normal = {node.input[0]: node for node in self._cut.nodes if node.op_type == "BatchNormalization"}
        found = {}
        for node in self._cut.nodes:
            after = normal.get(node.output[0]) if node.op_type == "Conv" and len(node.output) else None
            if after is not None and all(name in self._floating for name in (node.input[1], *after.input[1:5])):
                found[node.input[1]] = channel_factors(after, self._value).astype(np.float32)
        return found

    def find(self, site: Site, value: Array) -> tuple[str, Array] | None:
        """The name of the original of a weight that became `value`, and its own value in the same layout (FP32)."""
        named = next((name for name in _names(site) if name in self._floating), None)
        found = None if named is None else self._by_name(named, value)
        if found is None and value.size >= _FEW:
            found = self._by_value(value)
        if found is None:  # a few values, or a weight that is there twice
            there = (self._by_name(name, value) for name in self._read_there(site) if name in self._floating)
            found = next(filter(None, there), None)
        return None if found is None else (found[0], self._nearest(*found, value))

    def _by_name(self, name: str, value: Array) -> tuple[str, Array] | None:
        found = [array for turned in (False, True) if (array := self._laid(name, value.shape, turned)) is not None]
        if len(found) == 2:
            found.sort(key=lambda array: -_correlation(_sample(array), _sample(value)))
        return (name, found[0]) if found else None

    def name_of(self, site: Site) -> str | None:
        """The name of a weight's original, if that is as it is in the same layout; None if it is not known."""
        if site.codes is None or site.grid is None:
            return None
        try:
            found = self.find(site, site.grid.values(site.codes()))
        except BROKEN:
            return None
        if found is None or tuple(self._floating[found[0]]) != found[1].shape:
            return None
        return found[0] if np.array_equal(self._value(found[0]), found[1]) else None

    def _by_value(self, value: Array) -> tuple[str, Array] | None:
        sample, best = _sample(value), list[tuple[float, str, bool]]()
        for name, dims in self._floating.items():
            for turned in (False, True):
                if (dims[::-1] if turned else dims) == value.shape and (not turned or len(dims) > 1):
                    best.append((_correlation(self._sampled(name, turned), sample), name, turned))
        best.sort(key=lambda each: -each[0])
        if not best or best[0][0] < _ALIKE or (len(best) > 1 and best[0][0] - best[1][0] < _CLEAR < 1 - best[0][0]):
            return None
        _, name, turned = best[0]
        laid = self._laid(name, value.shape, turned)
        return None if laid is None else (name, laid)

    def _nearest(self, name: str, plain: Array, value: Array) -> Array:
        """The weight as it is, or with the normalisation behind it folded into it, whichever is nearer."""
        factor = self._folded.get(name)
        if factor is None or factor.size != value.shape[0]:
            return plain
        folded = plain * factor.reshape(-1, *[1] * (value.ndim - 1))
        return min((plain, folded), key=lambda array: float(np.square(array - value).sum()))

    def way(self, name: str, laid: Array) -> Way:
        """How what `find` gave came from the original: as it is, turned, or with a normalisation folded into it."""
        plain = self._value(name)
        if plain.shape == laid.shape and np.array_equal(plain, laid):
            return "plain"
        return "turned" if plain.T.shape == laid.shape and np.array_equal(plain.T, laid) else "folded"

    def back(self, name: str, way: Way, value: Array) -> Array:
        """A value that was found so, in the original's own layout and type."""
        plain = self._array(name)
        if way == "folded":
            factor = self._folded[name].reshape(-1, *[1] * (value.ndim - 1))
            value = np.divide(value, factor, out=plain.astype(np.float32), where=factor != 0)
        return np.ascontiguousarray(value.T if way == "turned" else value).astype(plain.dtype)

    def _laid(self, name: str, shape: tuple[int, ...], turned: bool) -> Array | None:
        dims = self._floating[name]
        if (dims[::-1] if turned else dims) != shape or (turned and len(dims) < 2):
            return None
        array = self._value(name)
        return array.T if turned else array

    def _value(self, name: str) -> Array:
        return self._array(name).astype(np.float32)

    def _array(self, name: str) -> Array:
        return self._weight.tensor(self._constants[name]) if name in self._constants else self._weight(name)

    def _sampled(self, name: str, turned: bool) -> Array:
        key = name, turned
        if key not in self._samples:
            try:
                array = self._value(name)
            except LayerwiseError:  # a weight that cannot be read is told where it is used
                array = np.zeros(self._floating[name], np.float32)
            self._samples[key] = _sample(array.T if turned else array)
        return self._samples[key]


def _names(site: Site) -> Iterator[str]:
    """Names that the original may have, the likeliest first."""
    for name in (site.source, site.tensor, site.value):
        yield from shorter_names(name)


def shorter_names(name: str) -> Iterator[str]:
    """A name without what quantisers add to it: as it is, then more and more of it left out."""
    for _ in range(3):
        if not name:
            return
        yield name
        shorter = _ENDS.sub("", name)
        if shorter == name:
            yield name.rstrip("0123456789")
            return
        name = shorter


def _sample(array: Array) -> Array:
    """Values at up to 4096 fixed places."""
    places = np.unravel_index(np.linspace(0, array.size - 1, min(array.size, _SAMPLE)).astype(np.int64), array.shape)
    return np.asarray(array[places], np.float64)


def _correlation(one: Array, other: Array) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 and np.isfinite(size) else 0.0


def channel_factors(norm: onnx.NodeProto, value: Callable[[str], Array]) -> Array:
    """What a normalisation by batch statistics multiplies each channel by (FP64). value: of a weight."""
    epsilon = next((a.f for a in norm.attribute if a.name in ("epsilon", "eps")), 1e-5)
    scale, variance = (value(norm.input[i]).astype(np.float64) for i in (1, 4))
    with np.errstate(all="ignore"):
        return np.asarray(scale / np.sqrt(variance + epsilon))
