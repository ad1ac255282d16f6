"""Synthetic inputs, bit-identical to those of Polygraphy's DataLoader.

One `numpy.random.RandomState(seed + iteration)` per iteration; inputs are drawn from it in the model's order.
Floats are `random_sample * (high - low) + low` in float64, then cast; integers and bools are uniform, both ends
included; a dynamic dimension is 1. With the torch backend: `torch.rand` (which ignores the range) and
`torch.randint`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.limits.memory import limit, remedy
from layerwise._tool.backends.sizes import binary_size
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_row, is_floating, is_integral, packed_nbytes
from layerwise._tool.backends.text import shown

_DRAWN_FLOAT, _DRAWN_INTEGER = 16, 8  # bytes per element while drawing: float64, twice; int64
Warn = Callable[[str], None]


class Synthetic:
    """Makes the feed dict of any iteration, reproducibly.

    UsageError for shapes, ranges or types that cannot be satisfied.
    """

    def __init__(self, spec: FeedSpec, inputs: Sequence[TensorInfo], warn: Warn) -> None:
        self.spec = spec
        self.inputs = list(inputs)
        self._shapes = _match(spec.shapes, [info.name for info in inputs], "--input-shapes")
        self._warn = warn
        known = {info.name for info in inputs}
        for name in spec.val_range:
            if name and name not in known:
                there = ", ".join(shown(info.name, 80) for info in inputs) or "none"
                warn(f"--val-range: the model has no input {shown(name, 80)}; its inputs: {there}")

    @property
    def count(self) -> int:
        """Number of iterations: as requested, otherwise one per given shape."""
        if self.spec.iterations is not None:
            return self.spec.iterations
        return max((len(shapes) for shapes in self.spec.shapes.values()), default=1)

    def feed(self, iteration: int) -> dict[str, Array]:
        """Return the inputs of one iteration, by name in the model's order."""
        seed = self.spec.seed + iteration
        plans = [(info, *self._plan(info, iteration)) for info in self.inputs]
        check_room((info, shape) for info, shape, values in plans if values is None)
        sampler = _TorchSampler(seed) if self.spec.backend_module == "torch" else _NumpySampler(seed)
        return {info.name: self._input(sampler, info, shape, values) for info, shape, values in plans}

    def _plan(self, info: TensorInfo, iteration: int) -> tuple[tuple[int, ...], Sequence[int] | None]:
        """Return an input's shape, and its values if the given shape is meant as values."""
        given = self._shapes.get(info.name)
        shape = given[iteration % len(given)] if given else None
        if shape is not None and info.name in self.spec.shapes and _is_shape_tensor(info, shape):
            self._warn(f"Assuming {shown(info.name)} is a shape tensor. Setting input values to: {shape}")
            return (len(shape),), shape
        return self._static_shape(info, shape), None

    def _input(
        self, sampler: "_Sampler", info: TensorInfo, shape: tuple[int, ...], values: Sequence[int] | None
    ) -> Array:
        try:
            if values is not None:
                return np.array(values, dtype_row(info.dtype).numpy)
            return self._draw(sampler, info, shape)
        except (ValueError, OverflowError) as error:
            raise UsageError(f"input {shown(info.name, 80)}: no {info.dtype} data: {error}") from error
        except MemoryError:
            raise UsageError(f"input {shown(info.name, 80)}: shape {shape} does not fit in memory") from None

    def _static_shape(self, info: TensorInfo, given: Sequence[int] | None) -> tuple[int, ...]:
        if info.shape is None and given is None:
            raise UsageError(f"input {shown(info.name, 80)} has no known shape: give one (--input-shapes)")
        if given is not None and info.name in self.spec.shapes:
            _check_shape(info, given)
        if given is not None and info.fits(given):
            return tuple(given)
        if given is not None:  # a pattern may match inputs it was not meant for
            self._warn(f"Input tensor: {shown(info.name)} | Cannot use shape {list(given)}, will use the default shape")
        shape = info.shape or ()
        static = tuple(dim if isinstance(dim, int) and dim >= 0 else 1 for dim in shape)
        if static != shape:
            self._warn(
                f"Input tensor: {shown(info.name)} [shape={shown(str(list(shape)))}] | "
                f"Will generate data of shape: {list(static)}.\n"
                "If this is incorrect, please provide --input-shapes or a custom data loader."
            )
        return static

    def _draw(self, sampler: "_Sampler", info: TensorInfo, shape: tuple[int, ...]) -> Array:
        low, high = self.spec.val_range.get(info.name, self.spec.val_range.get("", (0.0, 1.0)))
        if is_integral(info.dtype):
            return sampler.integers(shape, info.dtype, int(low), int(high))
        if info.dtype == "bool":
            return sampler.integers(shape, info.dtype, int(bool(low)), int(bool(high)))
        return sampler.floats(shape, info.dtype, float(low), float(high))


def check_room(inputs: Iterable[tuple[TensorInfo, tuple[int, ...]]]) -> None:
    """Raise UsageError unless inputs of these shapes, and the temporaries for the largest, fit the memory limit."""
    most, total, drawn, last = limit(), 0, 0, ""
    for info, shape in inputs:
        count = math.prod(shape)
        total += packed_nbytes(info.dtype, shape)
        drawn = max(drawn, count * (_DRAWN_INTEGER if is_integral(info.dtype) else _DRAWN_FLOAT))
        last = f"input {shown(info.name, 80)} of shape {shown(str(list(shape)), 200)}"
        if most is not None and total + drawn > most:
            raise UsageError(f"{last} needs {binary_size(total + drawn)} to make: {remedy(most)}")


def _match(shapes: Mapping[str, Any], names: Sequence[str], option: str) -> dict[str, Any]:
    """Assign each input the entry of its name or of a matching pattern. UsageError for an unused entry."""
    matched: dict[str, Any] = {}
    for pattern, value in shapes.items():
        fitting = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not fitting:
            there = ", ".join(shown(name, 80) for name in names) or "none"
            raise UsageError(f"{option}: the model has no input {shown(pattern, 80)}; its inputs: {there}")
        matched |= {name: value for name in fitting if name not in shapes or name == pattern}
    return matched


def _check_shape(info: TensorInfo, given: Sequence[int]) -> None:
    if any(dim < 0 for dim in given):
        raise UsageError(f"input {shown(info.name, 80)}: shape {list(given)} needs numbers of 0 and more")
    if not info.fits(given):
        model = shown(str(list(info.shape or ())))
        raise UsageError(f"input {shown(info.name, 80)}: shape {list(given)} does not fit the model's {model}")


def _is_shape_tensor(info: TensorInfo, given: Sequence[int]) -> bool:
    """Return whether `given` are values, not a shape: the input is 1-D, integer, and has as many elements."""
    return is_integral(info.dtype) and info.shape == (len(given),)


class _Sampler(Protocol):
    def integers(self, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Array: ...
    def floats(self, shape: tuple[int, ...], dtype: str, low: float, high: float) -> Array: ...


class _NumpySampler:
    def __init__(self, seed: int) -> None:
        self._rng = np.random.RandomState(seed)

    def integers(self, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Array:
        wanted = dtype_row(dtype).numpy
        drawn: Any = np.int8 if wanted.isbuiltin == 2 else wanted
        return np.array(self._rng.randint(low, high + 1, shape, drawn)).astype(wanted)

    def floats(self, shape: tuple[int, ...], dtype: str, low: float, high: float) -> Array:
        wanted = dtype_row(dtype)
        scale, shift = _scale(low, high)
        with np.errstate(all="ignore"):
            values = np.array(self._rng.random_sample(shape) * scale + shift)
            return values.astype(str).astype(object) if dtype == "string" else values.astype(wanted.numpy)


def _scale(low: float, high: float) -> tuple[float, float]:
    """Return factor and offset; two infinite ends must not combine to NaN."""
    scale, shift = high - low, low
    if math.isinf(low):
        scale, shift = low, 0.0
    return (high if math.isinf(high) else scale), shift


class _TorchSampler:
    def __init__(self, seed: int) -> None:
        from layerwise._tool.backends.torch_bridge import import_torch, to_array

        self._torch, self._to_array = import_torch("the torch data loader backend"), to_array
        self._rng = self._torch.Generator()
        self._rng.manual_seed(seed)

    def integers(self, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Array:
        kind = getattr(self._torch, dtype)
        return self._to_array(self._torch.randint(low, high + 1, shape, generator=self._rng, dtype=kind))

    def floats(self, shape: tuple[int, ...], dtype: str, low: float, high: float) -> Array:
        if not is_floating(dtype) or not hasattr(self._torch, dtype):
            raise UsageError(f"the torch data loader backend has no type {dtype}")
        kind = getattr(self._torch, dtype)
        return self._to_array(self._torch.rand(shape, generator=self._rng, dtype=kind))
