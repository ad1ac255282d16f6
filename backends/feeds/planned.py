"""Inputs by a plan: what the graph takes, reproducible by seed and iteration."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.synthetic import Synthetic, check_room
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.backends.tensors import TensorInfo, dtype_row, is_floating, is_integral
from layerwise._tool.backends.text import shown

Warn = Callable[[str], None]
_LEAST_TAIL, _MOST_TAIL = 1, 3  # a tail of a mask is at most one third of a row


class Planned:
    """Makes the feed dict of any iteration. Inputs without a plan are made as Polygraphy does, which is said."""

    def __init__(self, spec: FeedSpec, inputs: Sequence[TensorInfo], warn: Warn) -> None:
        self._plans = {plan.name: plan for plan in spec.plan}
        self._spec, self._inputs = spec, list(inputs)
        self._rest = [info for info in inputs if info.name not in self._plans]
        self._others = Synthetic(spec, inputs, warn)  # checks names, seeds and shapes too
        if spec.backend_module != "numpy":
            warn("--data-loader-backend-module has no effect with --feeds auto")
        for info in self._rest:
            warn(f"no plan for input {shown(info.name, 80)}: it is made as Polygraphy does")

    @property
    def count(self) -> int:
        """Number of iterations, as of synthetic data."""
        return self._others.count

    def feed(self, iteration: int) -> dict[str, Array]:
        """Return the inputs of one iteration, by name in the model's order."""
        rest = self._others.feed(iteration) if self._rest else {}
        shapes = {name: plan.shapes[iteration % len(plan.shapes)] for name, plan in self._plans.items()}
        planned = [info for info in self._inputs if info.name in self._plans]
        for info in planned:
            if not info.fits(shapes[info.name]):
                wanted = shown(str(list(info.shape or ())), 200)
                raise UsageError(
                    f"input {shown(info.name, 80)}: shape {shapes[info.name]} does not fit the model's {wanted}"
                )
        check_room((info, tuple(shapes[info.name])) for info in planned)
        rng = np.random.RandomState(self._spec.seed + iteration)
        made = {info.name: _drawn(rng, self._plans[info.name], info, shapes[info.name]) for info in planned}
        return {info.name: made[info.name] if info.name in made else rest[info.name] for info in self._inputs}


def _drawn(rng: np.random.RandomState, plan: InputPlan, info: TensorInfo, shape: Sequence[int]) -> Array:
    try:
        values = _KINDS[plan.kind](rng, plan, tuple(shape))
        return _cast(values, info)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"input {shown(plan.name, 80)}: no {plan.kind}: {error}") from error
    except MemoryError:
        raise UsageError(f"input {shown(plan.name, 80)}: shape {list(shape)} does not fit in memory") from None


def _cast(values: Any, info: TensorInfo) -> Array:
    if info.dtype == "string":
        return np.asarray(values.astype(str).astype(object))
    wanted = dtype_row(info.dtype).numpy
    if is_floating(info.dtype) or info.dtype == "bool" or not is_integral(info.dtype):
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(wanted))
    return np.asarray(np.asarray(values).astype(np.int64).astype(wanted))


def _integers(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    """One of each of as many equal parts of the range as there are elements: both ends of a large table are used."""
    low, high = int(plan.low), int(plan.high)
    if high < low:
        raise ValueError(f"{low} to {high} is no range")
    count = int(np.prod(shape, dtype=np.int64))
    parts = (rng.permutation(count) + rng.random_sample(count)) / max(count, 1)
    return np.minimum(low + np.floor(parts * (high - low + 1)).astype(np.int64), high).reshape(shape)


def _uniform(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    return np.asarray(rng.random_sample(shape) * (plan.high - plan.low) + plan.low)


def _normal(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    return np.asarray(rng.standard_normal(shape))


def _mask(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    """Tails of other lengths in each row of the first axis; the first element of a row is always kept."""
    values = np.full(shape, plan.high, np.float64)
    width = shape[-1] if shape else 0
    rows = shape[0] if len(shape) > 1 else 1
    if width < 2:
        return values
    most = max(_LEAST_TAIL, width // _MOST_TAIL)
    tails = (rng.randint(0, most + 1) + np.arange(rows) * max(1, most // max(rows, 1))) % (most + 1)
    if rows == 1:
        tails = np.asarray([max(1, int(tails[0]))])
    for row, tail in enumerate(tails):
        place = values[row] if len(shape) > 1 else values
        place[..., width - int(tail) :] = plan.low
    return values


def _positions(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    width = shape[-1] if shape else 1
    counted = np.minimum(plan.low + np.arange(width), max(plan.low, plan.high))
    return np.broadcast_to(counted if shape else counted[0], shape).copy()


def _lengths(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    values = rng.randint(int(plan.low), int(plan.high) + 1, shape)
    flat = np.asarray(values).reshape(-1)
    flat[:1] = int(plan.high)
    return flat.reshape(shape)


def _values(rng: np.random.RandomState, plan: InputPlan, shape: tuple[int, ...]) -> Any:
    given = np.asarray(plan.values or [plan.low], np.float64)
    count = int(np.prod(shape, dtype=np.int64))
    return given.reshape(shape) if given.size == count else np.broadcast_to(given[:1].reshape(()), shape).copy()


_KINDS: dict[str, Callable[[np.random.RandomState, InputPlan, tuple[int, ...]], Any]] = {
    "integers": _integers, "uniform": _uniform, "normal": _normal, "mask": _mask, "positions": _positions,
    "lengths": _lengths, "values": _values,
}  # fmt: skip
