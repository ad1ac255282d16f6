"""Fits given inputs to a model's: checks names, shapes and types; makes safe casts and reports them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.shapes import reshaped
from layerwise._tool.backends.names import similar_name
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.tensors import EXTENDED_NAMES, TensorInfo, dtype_name, dtype_row, is_floating, is_integral
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

Warn = Callable[[str], None]


def fit_feed(
    feed: Mapping[str, Any], inputs: Sequence[TensorInfo] | None, warn: Warn, where: str, *, similar: bool = False
) -> dict[str, Array]:
    """Return the arrays for `inputs`, in order. Inputs that the model does not have are dropped and reported. None:
    what the model takes is not known, all data are for it.

    similar: an input without data of its name gets that of a similar one, or else of its place, data of its shape
    and kind before others, and data of another shape are permuted or reshaped; that is reported. UsageError, naming
    both sides, if a name is missing, a shape does not match, or a cast would change values.
    """
    if inputs is None:
        return {name: _array(value, f"{where}: input {shown(name, 80)}") for name, value in feed.items()}
    if similar:
        feed = _similar(feed, inputs, warn)
    missing = [info.name for info in inputs if info.name not in feed]
    extra = [name for name in feed if name not in {info.name for info in inputs}]
    if missing:
        raise UsageError(
            f"{where} has no data for input {_list(missing)}; the model's inputs: "
            f"{_list([info.name for info in inputs])}; the data's: {_list(list(feed))}"
        )
    if extra:
        warn(f"{where}: data that the model has no input for is not used: {_list(extra)}")
    return {info.name: fit_input(feed[info.name], info, warn, where, reshape=similar) for info in inputs}


def _similar(feed: Mapping[str, Any], inputs: Sequence[TensorInfo], warn: Warn) -> Mapping[str, Any]:
    taken = _taken(feed, inputs)
    for name, other in taken.items():
        warn(
            f"Input name did not match exactly. Using data of {shown(other, 80)} for input {shown(name, 80)} "
            "(--strict-names does not)"
        )
    others = set(taken.values())
    kept = {name: value for name, value in feed.items() if name not in others}
    return kept | {name: feed[other] for name, other in taken.items()}


def _taken(feed: Mapping[str, Any], inputs: Sequence[TensorInfo]) -> dict[str, str]:
    """For inputs without data of their name, whose data they get: a similar name before a place, and data that fit an
    input as they are before others. Data of an input's name belong to that input.
    """
    names = list(feed)
    owned = {info.name for info in inputs} & feed.keys()
    taken: dict[str, str] = {}
    for fitting, by_place in ((True, False), (True, True), (False, False), (False, True)):
        for place, info in enumerate(inputs):
            if info.name in owned or info.name in taken:
                continue
            used = owned | set(taken.values())
            if fitting:
                used |= {name for name in names if not _fits(feed[name], info)}
            other = similar_name(info.name, names, place if by_place else len(names), used)
            if other is None and fitting and by_place:
                other = next((name for name in names if name not in used), None)
            if other is not None:
                taken[info.name] = other
    return taken


def _fits(value: Any, info: TensorInfo) -> bool:
    """Whether data have the shape and kind of an input; what is no array yet may."""
    if isinstance(value, np.ndarray):
        kind = dtype_name(value)
    elif isinstance(value, Stored):
        kind = value.dtype
    else:
        return True
    return info.fits(value.shape) and is_floating(kind) == is_floating(info.dtype)


def _list(names: Sequence[str]) -> str:
    told = ", ".join(shown(name, 80) for name in names[:20])
    return f"{told}, … ({len(names)})" if len(names) > 20 else told or "none"


def fit_input(value: Any, info: TensorInfo, warn: Warn, where: str, *, reshape: bool = False) -> Array:
    """Return one input as an array of the model's type, and shape where asked to. UsageError as in `fit_feed`."""
    label = f"{where}: input {shown(info.name, 80)}"
    array = _of_shape(_array(value, label), info, reshape, warn, label)
    if dtype_name(array) == info.dtype:
        return array
    if info.dtype in EXTENDED_NAMES and array.dtype.kind == "V" and array.itemsize == _itemsize(info.dtype):
        warn(f"{label}: stored without its type (raw {array.dtype}), read as {info.dtype}")
        return np.asarray(array.view(dtype_row(info.dtype).numpy))
    cast, problem = cast_safely(array, info.dtype)
    if problem:
        raise UsageError(f"{label} is {dtype_name(array)}, the model takes {info.dtype}: {problem}")
    warn(f"{label}: cast from {dtype_name(array)} to {info.dtype}")
    return cast


def _itemsize(dtype: str) -> int:
    return dtype_row(dtype).numpy.itemsize


def _array(value: Any, label: str) -> Array:
    try:
        if isinstance(value, np.ndarray):
            array = value
        elif isinstance(value, Stored):
            array = value.array()
        else:
            from layerwise._tool.backends.formats.json_arrays import as_array  # what reads files

            array = as_array(value)
    except ValueError as error:
        raise UsageError(f"{label} is not an array: {in_words(error, 200)}") from None
    if array.dtype.kind in "USTO":
        if not all(isinstance(item, str | bytes) for item in array.flat):
            raise UsageError(f"{label} is not an array of numbers or text, but {type(value).__name__}")
        return array.astype(object)
    return array


def _of_shape(array: Array, info: TensorInfo, reshape: bool, warn: Warn, label: str) -> Array:
    if info.fits(array.shape):
        return array
    wanted = shown(str(list(info.shape or ())), 200)
    found = reshaped(array, info.shape) if reshape and info.shape is not None else None
    if found is None or not info.fits(found.shape):
        raise UsageError(f"{label} has shape {list(array.shape)}, the model takes {wanted}")
    how = "permuted" if sorted(found.shape) == sorted(array.shape) else "reshaped"
    warn(f"{label} has shape {list(array.shape)}, the model takes {wanted}: {how} (--strict-names refuses that)")
    return found


def cast_safely(array: Array, dtype: str) -> tuple[Array, str]:
    """Cast; the second value is empty, or says why the cast would change values by more than rounding of floats."""
    source = dtype_name(array)
    kinds = [_kind(source), _kind(dtype)]
    if "other" in kinds:
        return array, "no cast between these"
    wanted = dtype_row(dtype).numpy
    with np.errstate(all="ignore"):
        cast = array.astype(wanted)
        if kinds == ["float", "float"]:
            lost = np.isfinite(array) & ~np.isfinite(cast)
            return cast, "some values are beyond its range" if lost.any() else ""
        if kinds[0] == "float" and not bool(np.all(array == np.trunc(array))):
            return cast, "some values are no integers"
        return cast, "" if _in_range(array, dtype) else "some values are beyond its range"


def _kind(name: str) -> str:
    if is_floating(name):
        return "float"
    return "integer" if is_integral(name) or name == "bool" else "other"


def _in_range(array: Array, dtype: str) -> bool:
    """Return whether `dtype` represents all the (integral) values exactly."""
    if array.size == 0:
        return True
    low, high = _limits(dtype)
    return low <= int(array.min()) and int(array.max()) <= high


def _limits(dtype: str) -> tuple[int, int]:
    wanted = dtype_row(dtype).numpy
    if dtype == "bool":
        return 0, 1
    if is_integral(dtype):
        info: Any = ml_dtypes.iinfo(wanted)  # type: ignore[no-untyped-call]
        return int(info.min), int(info.max)
    mantissa: int = ml_dtypes.finfo(wanted).nmant  # type: ignore[no-untyped-call]
    most = 1 << (mantissa + 1)
    return -most, most
