"""Saves a structure as a model: weights are streamed from their files, never loaded together."""

import os
from pathlib import Path

import onnx

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.folders import written_together
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.model.protos import all_tensors
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.streamed import embed, is_external, nbytes, place, write_apart, write_streamed
from layerwise._tool.surgery.wire.pieces import ONE_FILE_LIMIT, THRESHOLD


def save(
    structure: Structure,
    path: Path,
    *,
    external: Path | None = None,
    threshold: int = THRESHOLD,
    overwrite: bool = False,
) -> None:
    """Write `structure` to `path`, atomically.

    external: a file next to `path` for weights of `threshold` bytes or more. Without it they are embedded, unless
    the base model has external ones, or all would exceed 2 GB: then they go to "<name>.data" next to `path`.
    UsageError if a file already exists and `overwrite` is not set; LayerwiseError if it cannot be written.
    """
    model = structure.with_(initializers={}).proto()
    weights = list(structure.initializers.values())
    if external is None and (_keeps_weights_outside(structure, weights) or _size(model, weights) > ONE_FILE_LIMIT):
        external = Path(f"{path.name}.data")
    own = [] if external is None else [tensor for tensor in weights if nbytes(tensor) >= max(threshold, 1)]
    data = path.parent / external if external and own else None
    for file in filter(None, (path, data)):
        if file.exists() and not overwrite:
            raise UsageError(f"{shown(str(file))} is there already: choose another name, or say to overwrite it")
    try:
        make_folder(path.parent)
        _write(model, weights, own, path, data, structure.folder)
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {shown(str(error), 300)}") from None


def _keeps_weights_outside(structure: Structure, weights: list[onnx.TensorProto]) -> bool:
    if structure.base is None or structure.folder is None:
        return False
    base = structure.base.relative_to(structure.folder).as_posix()
    return any(place(tensor)[0] != base for tensor in weights if is_external(tensor))


def _size(model: onnx.ModelProto, weights: list[onnx.TensorProto]) -> int:
    return int(model.ByteSize()) + sum(map(nbytes, weights))


def _write(
    model: onnx.ModelProto,
    weights: list[onnx.TensorProto],
    own: list[onnx.TensorProto],
    path: Path,
    data: Path | None,
    folder: Path | None,
) -> None:
    """Write the model with `weights` as its initializers, in order; `own` are those that go to `data`."""
    for tensor in filter(is_external, all_tensors(model)):
        embed(tensor, folder)
    if data is None:
        with atomic_writer(path) as stream:
            write_streamed(stream, model, weights, folder)
        return
    location, apart = _location(data, path), {id(tensor) for tensor in own}
    with written_together(path) as new:
        (new / location).parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(new / location) as stream:
            moved = iter(write_apart(stream, location, own, folder))
        for tensor in weights:
            model.graph.initializer.append(next(moved) if id(tensor) in apart else tensor)
            if id(tensor) not in apart and is_external(tensor):
                embed(model.graph.initializer[-1], folder)
        with atomic_writer(new / path.name) as stream:
            stream.write(model.SerializeToString())


def _location(data: Path, path: Path) -> str:
    location = os.path.relpath(data, path.parent)
    if location.startswith(".."):
        raise UsageError(f"weights must lie beside {shown(str(path))} or below, not at {shown(str(data))}")
    return Path(location).as_posix()
