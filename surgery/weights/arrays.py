"""Replaces weights of a model by arrays from NumPy files, and saves them."""

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.feeds.fit import cast_safely
from layerwise._tool.backends.filesystem.files import atomic_writer, read_file
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.formats.npy import array_from_npy, header_bytes, read_npz, storable
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure


def with_weights(structure: Structure, arrays: Mapping[str, Array]) -> Structure:
    """Return the model with new values in some of its initializers, with unchanged shapes and types.

    LayerwiseError for a name that is not an initializer, another shape, or a type that cannot be cast without changing
    values.
    """
    weights = dict(structure.initializers)
    for name, array in arrays.items():
        if name not in weights:
            raise LayerwiseError(f"the model has no weight {shown(name, 120)!r}")
        weights[name] = _filled(weights[name], array)
    return structure.with_(initializers=weights)


def _filled(weight: TensorProto, array: Array) -> TensorProto:
    label, shape, wanted = shown(weight.name, 120), tuple(weight.dims), dtype_name(weight.data_type)
    if array.shape != shape:
        raise LayerwiseError(f"weight {label!r} has shape {list(shape)}, the array {list(array.shape)}")
    if dtype_name(array) != wanted:
        array = _retyped(array, wanted, label)
    filled = numpy_helper.from_array(np.asarray(array, order="C"), weight.name)
    filled.data_type = weight.data_type
    filled.doc_string = weight.doc_string
    del filled.dims[:]
    filled.dims.extend(shape)
    return filled


def _retyped(array: Array, wanted: str, label: str) -> Array:
    row = dtype_row(wanted)
    if array.dtype.kind == "V" and array.itemsize == row.numpy.itemsize:  # how .npy stores types that NumPy lacks
        return array.view(row.numpy)
    cast, problem = cast_safely(array, wanted)
    if problem:
        raise LayerwiseError(f"weight {label!r} is {wanted}, the array {dtype_name(array)}: {problem}")
    return cast


def read_weights(words: Sequence[str]) -> dict[str, Array]:
    """Read `FILE.npz` (all its arrays) and `NAME=FILE.npy` in order; later ones win.

    UsageError for any other argument, BadFile for a file that cannot be read. Nothing is unpickled.
    """
    arrays: dict[str, Array] = {}
    for word in words:
        name, equals, path = word.rpartition("=")
        if not equals and word.endswith(".npz"):
            arrays |= _loaded(user_path(word), read_npz)
        elif equals and name:
            arrays[name] = _loaded(user_path(path), lambda place: array_from_npy(read_file(place)))
        else:
            raise UsageError(f"{shown(word, 200)!r}: give FILE.npz, or NAME=FILE.npy for one weight")
    return arrays


def _loaded(path: Path, read: Any) -> Any:
    try:
        return read(path)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from None
    except ValueError as error:
        raise BadFile(path, str(error)) from None


def chosen_weights(structure: Structure, patterns: Iterable[str]) -> list[str]:
    """Return the initializers that match names or globs, in the model's order; all without patterns.

    UsageError for a pattern without matches.
    """
    names = list(structure.initializers)
    patterns = list(patterns)
    for pattern in patterns:
        if pattern not in structure.initializers and not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(f"the model has no weight {shown(pattern, 120)!r}")
    return [n for n in names if not patterns or n in patterns or any(fnmatchcase(n, p) for p in patterns)]


def save_weights(structure: Structure, names: Sequence[str], path: Path) -> None:
    """Write initializers to `path`: one as .npy, any number as .npz. Types that NumPy lacks are stored as raw bytes.

    UsageError if an .npy would have to hold several; OSError.
    """
    if path.suffix == ".npy" and len(names) != 1:
        raise UsageError(f"{shown(str(path))}: an .npy file holds one weight, not {len(names)}: give an .npz")
    with atomic_writer(path) as stream:
        if path.suffix == ".npy":
            _write(structure, names[0], stream)
            return
        with zipfile.ZipFile(stream, "w") as archive:
            for name in names:
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    _write(structure, name, member)


def _write(structure: Structure, name: str, stream: Any) -> None:
    array = storable(tensor_array(structure.initializers[name], structure.folder))
    stream.write(header_bytes(array))
    stream.write(array.data if array.dtype.kind != "V" and array.flags.c_contiguous else array.tobytes())
