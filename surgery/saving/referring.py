"""Saves a part of a large model without copying its weights, by reference to the files that contain them."""

import os
from pathlib import Path

import onnx

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.model.protos import all_tensors
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.saving.streamed import is_external, place

WORTH_IT = 64 << 20  # bytes of weights; fewer are copied quickly


def save_referring(structure: Structure, path: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the model; its weights stay external data in their files, which are returned.

    None, and everything is copied, if the weights have fewer than 64 MiB or a file is neither next to `path` nor
    below: ONNX allows no other location, and its checker no links. Those files must not change from then on.
    Raises like `save`.
    """
    model = structure.proto()
    weights = [tensor for tensor in all_tensors(model) if is_external(tensor)]
    nbytes = sum(place(tensor)[2] for tensor in weights)
    places = {place(tensor)[0] for tensor in weights}
    beside = {location: _beside(structure.folder, location, path) for location in places}
    if nbytes < WORTH_IT or None in beside.values():
        save(structure, path, overwrite=overwrite)
        return []
    if path.exists() and not overwrite:
        raise UsageError(f"{shown(str(path))} is there already: choose another name, or say to overwrite it")
    for tensor in weights:
        entry = next(entry for entry in tensor.external_data if entry.key == "location")
        entry.value = beside[entry.value] or ""
    _write(model, path)
    return [path.parent / location for location in sorted(filter(None, beside.values()))]


def _beside(folder: Path | None, location: str, path: Path) -> str | None:
    """Return the location as a model at `path` states it; None if it cannot, or if it is the file to be written."""
    if folder is None:
        return None
    file = (folder / location).resolve()
    relative = Path(os.path.relpath(file, path.parent.resolve()))
    return None if ".." in relative.parts or file == path.resolve() else relative.as_posix()


def _write(model: onnx.ModelProto, path: Path) -> None:
    try:
        atomic_write(path, model.SerializeToString())
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {shown(str(error), 300)}") from None
