"""Saves a structure as a model: weights are streamed from their files, never loaded together, or stay there."""

import os
import re
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

import onnx

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, atomic_writer
from layerwise._tool.backends.filesystem.folders import written_together
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.model.protos import all_tensors
from layerwise._tool.backends.specs import ModelOptions
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.streamed import embed, is_external, nbytes, place, write_apart, write_streamed
from layerwise._tool.surgery.wire.pieces import ONE_FILE_LIMIT, THRESHOLD

WORTH_IT = 64 << 20  # bytes of weights; fewer are copied quickly


def save(
    structure: Structure,
    path: Path,
    *,
    external: Path | None = None,
    each: bool = False,
    threshold: int = THRESHOLD,
    overwrite: bool = False,
) -> None:
    """Write `structure` to `path`, atomically.

    external: a file next to `path` for weights of `threshold` bytes or more; each: one for each of them instead, named
    after it. Without it they are embedded, unless
    the base model has external ones, or all would exceed 2 GB: then they go to "<name>.data" next to `path`.
    UsageError if a file already exists and `overwrite` is not set; LayerwiseError if it cannot be written.
    """
    model = structure.with_(initializers={}).proto()
    weights = list(structure.initializers.values())
    size = model.ByteSize() + sum(map(nbytes, weights))
    if external is None and (_keeps_weights_outside(structure, weights) or size > ONE_FILE_LIMIT):
        external = Path(f"{path.name}.data")
    own = [] if external is None else [tensor for tensor in weights if nbytes(tensor) >= max(threshold, 1)]
    apart = {} if external is None else _places(own, _location(path.parent / external, path), path, each)
    _free([path, *(path.parent / location for location in apart.values())], structure, weights, overwrite, each)
    try:
        make_folder(path.parent)
        _write(model, weights, apart, path, structure.folder)
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {in_words(error)}") from None


def save_as(structure: Structure, path: Path, options: ModelOptions, *, overwrite: bool = False) -> None:
    """Write `structure` to `path` with its weights where the options say. Raises as `save`."""
    name, threshold = options.save_external_data, options.external_data_size_threshold
    save(
        structure,
        path,
        external=None if name is None else Path(name or f"{path.name}.data"),
        each=options.external_each,
        threshold=THRESHOLD if threshold is None else threshold,
        overwrite=overwrite,
    )


def _places(own: list[onnx.TensorProto], location: str, path: Path, each: bool) -> dict[int, str]:
    """By the id of a weight that is written apart, its file."""
    if not each:
        return dict.fromkeys(map(id, own), location)
    names = own_names((tensor.name for tensor in own), path.name)
    return {id(tensor): name for tensor, name in zip(own, names, strict=True)}


def own_names(weights: Iterable[str], model: str) -> list[str]:
    """Names of files beside `model`, one for each of these weights, like theirs."""
    taken = {model: None}
    for weight in weights:
        name = re.sub(r"[^\w.-]", "_", weight)[:200].lstrip(".") or "weight"
        taken[next(free for free in chain([name], (f"{name}_{i}" for i in count(1))) if free not in taken)] = None
    return [*taken][1:]


def _free(
    files: list[Path], structure: Structure, weights: list[onnx.TensorProto], overwrite: bool, each: bool
) -> None:
    """UsageError for files that are there unless they may be overwritten; for those of the weights in any case."""
    folder = structure.folder or Path()
    own = {(folder / place(tensor)[0]).resolve() for tensor in filter(is_external, weights)} if each else set()
    for file in filter(Path.exists, files):
        if not overwrite or file.resolve() in own:
            raise UsageError(f"{shown(str(file))} is there already: choose another name, or say to overwrite it")


def _keeps_weights_outside(structure: Structure, weights: list[onnx.TensorProto]) -> bool:
    if structure.base is None or structure.folder is None:
        return False
    base = structure.base.relative_to(structure.folder).as_posix()
    return any(place(tensor)[0] != base for tensor in weights if is_external(tensor))


def _write(
    model: onnx.ModelProto,
    weights: list[onnx.TensorProto],
    apart: dict[int, str],
    path: Path,
    folder: Path | None,
) -> None:
    """Write the model with `weights` as its initializers, in order; apart: where those are that do not lie in it."""
    for tensor in filter(is_external, all_tensors(model)):
        embed(tensor, folder)
    if not apart:
        with atomic_writer(path) as stream:
            write_streamed(stream, model, weights, folder)
        return
    files: dict[str, list[onnx.TensorProto]] = {}
    for tensor in weights:
        if id(tensor) in apart:
            files.setdefault(apart[id(tensor)], []).append(tensor)
    with written_together(path) as new:
        moved: dict[int, onnx.TensorProto] = {}
        for location, own in files.items():
            (new / location).parent.mkdir(parents=True, exist_ok=True)
            with atomic_writer(new / location) as stream:
                written = write_apart(stream, location, own, folder)
                moved |= {id(tensor): placed for tensor, placed in zip(own, written, strict=True)}
        for tensor in weights:
            model.graph.initializer.append(moved.get(id(tensor), tensor))
            if id(tensor) not in apart and is_external(tensor):
                embed(model.graph.initializer[-1], folder)
        with atomic_writer(new / path.name) as stream:
            stream.write(model.SerializeToString())


def _location(data: Path, path: Path) -> str:
    location = os.path.relpath(data, path.parent)
    if location.startswith(".."):
        raise UsageError(f"weights must lie beside {shown(str(path))} or below, not at {shown(str(data))}")
    return Path(location).as_posix()


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
    _write_alone(model, path)
    return [path.parent / location for location in sorted(filter(None, beside.values()))]


def _beside(folder: Path | None, location: str, path: Path) -> str | None:
    """Return the location as a model at `path` states it; None if it cannot, or if it is the file to be written."""
    if folder is None:
        return None
    file = (folder / location).resolve()
    relative = Path(os.path.relpath(file, path.parent.resolve()))
    return None if ".." in relative.parts or file == path.resolve() else relative.as_posix()


def _write_alone(model: onnx.ModelProto, path: Path) -> None:
    try:
        atomic_write(path, model.SerializeToString())
    except (OSError, ValueError) as error:
        raise LayerwiseError(f"{shown(str(path))} cannot be written: {in_words(error)}") from None
