"""Saving a part of a large model without copying its weights: their file gets a second name beside the new model."""

import os
import tempfile
from pathlib import Path

import onnx

from backends.errors import LayerwiseError, UsageError
from backends.files import atomic_write
from backends.protos import all_tensors
from backends.text import shown
from surgery.saving import save
from surgery.streamed import is_external, place
from surgery.structure import Structure

WORTH_IT = 64 << 20  # bytes of weights; fewer are copied in no time


def save_linked(structure: Structure, path: Path, *, overwrite: bool = False) -> Path | None:
    """Write the model; its weights stay in the file they are in, which becomes "<name>.data" beside it (a hard link).

    Return that link, or None where all was copied: fewer than 64 MiB of weights, weights in several files, another
    file system. A file that is changed in place, not replaced, changes under both of its names. Raises as `save`.
    """
    model = structure.proto()
    weights = [tensor for tensor in all_tensors(model) if is_external(tensor)]
    locations = {place(tensor)[0] for tensor in weights}
    nbytes = sum(place(tensor)[2] for tensor in weights)
    data = path.with_name(f"{path.name}.data")
    if len(locations) != 1 or nbytes < WORTH_IT or structure.folder is None:
        save(structure, path, overwrite=overwrite)
        return None
    for file in (path, data):
        if file.exists() and not overwrite:
            raise UsageError(f"{shown(str(file))} is there already: choose another name, or say to overwrite it")
    if not _link(structure.folder / locations.pop(), data):
        save(structure, path, overwrite=overwrite)
        return None
    for tensor in weights:
        next(entry for entry in tensor.external_data if entry.key == "location").value = data.name
    _write(model, path)
    return data


def _link(source: Path, data: Path) -> bool:
    """Give a file a second name, in the place of what has it now; False where that cannot be."""
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=data.parent, prefix=".link") as folder:
            os.link(source.resolve(), Path(folder) / "data")
            (Path(folder) / "data").replace(data)
    except OSError:
        return False
    return True


def _write(model: onnx.ModelProto, path: Path) -> None:
    try:
        atomic_write(path, model.SerializeToString())
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {shown(str(error), 300)}") from None
