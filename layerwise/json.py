"""Polygraphy's JSON: inputs, results and anything made of dicts, lists, numbers, text and arrays."""

import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.formats import json_arrays, json_format
from layerwise._tool.backends.results import accuracy
from layerwise._tool.backends.results import inference as results
from layerwise._tool.backends.results import io as results_io
from layerwise.comparator.accuracy import AccuracyResults
from layerwise.comparator.accuracy import from_floor as lifted_accuracy
from layerwise.comparator.struct import RunResults

PathLike = str | os.PathLike[str]


def to_json(obj: Any) -> str:
    """An object as JSON text."""
    stream = BytesIO()
    json_format.write_value(stream, _floor(obj), 0)
    return stream.getvalue().decode()


def save_json(obj: Any, dest: PathLike, description: str | None = None) -> None:
    """Write an object to a file, whole or not at all."""
    json_format.save(dest, _floor(obj))


def load_json(src: PathLike, description: str | None = None) -> Any:
    """Read a file with all its arrays. BadFile names the file and the reason."""
    return _whole(results_io.load_json(Path(src)))


def from_json(src: str) -> Any:
    """Read JSON text."""
    with temporary_folder() as folder:
        path = folder / "text.json"
        atomic_write(path, src)
        return load_json(path)


def _floor(obj: Any) -> Any:
    """As the floors below write it."""
    if isinstance(obj, RunResults):
        return obj.to_floor()
    if isinstance(obj, AccuracyResults):
        return accuracy.AccuracyResults([result.to_floor() for result in obj])
    if isinstance(obj, Mapping):
        return {key: _floor(value) for key, value in obj.items()}
    return [_floor(item) for item in obj] if isinstance(obj, list | tuple) else obj


def _whole(loaded: Any) -> Any:
    if isinstance(loaded, results.RunResults):
        return RunResults.from_floor(loaded)
    if isinstance(loaded, accuracy.AccuracyResults):
        return lifted_accuracy(loaded)
    if isinstance(loaded, json_arrays.StoredArray):
        return loaded.array()
    if isinstance(loaded, dict):
        return {key: _whole(value) for key, value in loaded.items()}
    return [_whole(item) for item in loaded] if isinstance(loaded, list) else loaded
