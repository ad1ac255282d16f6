"""Tensors of a dump in another layout or of another type than their files say; values are read on request."""

import math
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.results.io import DumpedArray
from layerwise._tool.backends.specs import DumpRule
from layerwise._tool.backends.tensors import to_numpy
from layerwise._tool.backends.text import shown

Shape = tuple[int, ...]


def laid_out(name: str, stored: Stored, rule: DumpRule) -> Stored:
    """A tensor as the rule says it is: its elements of another type, its axes in another order, or of another shape.

    UsageError if that does not fit its shape or its type.
    """
    kind, steps = _of(rule.types, name), (_of(rule.layouts, name) or "").split()
    dtype, shape, changes = stored.dtype, stored.shape, list[Callable[[Array], Array]]()
    if kind is not None and kind != dtype:
        dtype = kind
        changes.append(_viewed(name, stored, kind))
    for step in steps:
        shape, change = _step(name, shape, step)
        changes.append(change)
    if not changes:
        return stored
    return DumpedArray(dtype, shape, partial(_changed, stored, changes))


def _of(table: Mapping[str, str], name: str) -> str | None:
    """What the first glob that fits says; a name itself comes first."""
    return table.get(name) or next((value for glob, value in table.items() if fnmatchcase(name, glob)), None)


def _changed(stored: Stored, changes: list[Callable[[Array], Array]]) -> Array:
    array = stored.array()
    for change in changes:
        array = change(array)
    return array


def _viewed(name: str, stored: Stored, kind: str) -> Callable[[Array], Array]:
    """Elements of the same size, whose bits are those of the type."""
    numpy = to_numpy(kind)
    raw = stored.dtype.removeprefix("|V").removeprefix("<V")
    size = int(raw) if raw.isdecimal() else to_numpy(stored.dtype).itemsize
    if stored.dtype == "string" or kind == "string" or size != numpy.itemsize:
        raise UsageError(f"{shown(name, 120)} has elements of {stored.dtype}, which are not those of {kind}")
    return lambda array: np.ascontiguousarray(array).view(numpy).reshape(array.shape)


def _step(name: str, shape: Shape, step: str) -> tuple[Shape, Callable[[Array], Array]]:
    wrong = UsageError(f"the layout {step} does not fit {shown(name, 120)} of shape {shape}")
    if "," in step:
        axes = [int(axis) for axis in step.split(",")]
        if sorted(axes) != list(range(len(shape))):
            raise wrong
        return tuple(shape[axis] for axis in axes), lambda array: array.transpose(axes)
    sizes = [int(size) for size in step.split("x")]
    known = math.prod(size for size in sizes if size >= 0)
    count = math.prod(shape)
    free = [place for place, size in enumerate(sizes) if size < 0]
    if len(free) > 1 or (known == 0 and free) or (count % known if free else known != count):
        raise wrong
    made = tuple(count // known if size < 0 else size for size in sizes)
    return made, lambda array: array.reshape(made)
