"""Requests to the warm worker while a model is edited: what an edit that needs an engine makes, and whether a state is
sound.

The worker keeps the model's structure; the states before are read from the history's own file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from backends.errors import UsageError
from backends.files import atomic_write
from backends.model import ModelFile
from backends.record_values import read_value
from backends.tensors import format_shape
from backends.text import shown
from surgery.checked import edit_problems
from surgery.edits import Edit, edit_from
from surgery.history import History
from surgery.structure import Structure
from surgery.types import types_of

if TYPE_CHECKING:
    from backends.jobs.context import JobContext

_MOST_TYPES = 1000
_known: dict[tuple[str, int, int], Structure] = {}


def answer_result(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Write what edits make. params: path, log (the history's file), at (the entry they follow), edits, out (a file
    for the structure). Answer: nothing. EditError where one does not fit.
    """
    structure = _applied(_state(params), params)
    atomic_write(Path(params["out"]), structure.proto().SerializeToString())
    return {}


def answer_check(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Say whether what edits make is sound. params: path, log, at, edits; result: a file that holds what they make.

    Answer: problems (texts), types: [tensor, before, after] of tensors of both whose type or shape is another.
    """
    before = _state(params)
    result = params.get("result")
    after = _applied(before, params) if result is None else _read(Path(result), before)
    found = [f"{node}: {message}" if node else message for node, message in edit_problems(before, after)]
    return {"problems": found, "types": changed_types(before, after)}


def changed_types(before: Structure, after: Structure) -> list[tuple[str, str, str]]:
    """(tensor, before, after) of tensors whose type or shape differs, as text."""
    one, other = types_of(before), types_of(after)
    found = []
    for name, value in other.items():
        old = one.get(name)
        if old is not None and old is not value and old.type != value.type:
            found.append((name, _text(old), _text(value)))
    return found[:_MOST_TYPES]


def _text(value: onnx.ValueInfoProto) -> str:
    data = value.SerializeToString()
    known = read_value(data, 0, len(data))
    return f"{known.kind or 'untyped'} {format_shape(known.shape)}"


def _state(params: dict[str, Any]) -> Structure:
    history = History(Path(params["log"]), _structure(Path(params["path"])))
    return history.structure_at(int(params["at"]))


def _applied(structure: Structure, params: dict[str, Any]) -> Structure:
    edits: Sequence[Edit] = [edit_from(value) for value in params["edits"]]
    for edit in edits:
        structure = edit.apply(structure)
    return structure


def _structure(path: Path) -> Structure:
    try:
        stat = path.stat()
    except OSError as error:
        raise UsageError(f"{shown(str(path))}: {error.strerror}") from None
    key = str(path), stat.st_mtime_ns, stat.st_size
    if key not in _known:
        _known.clear()
        with ModelFile(path) as model:
            _known[key] = Structure.open(model)
    return _known[key]


def _read(path: Path, before: Structure) -> Structure:
    return Structure.from_proto(onnx.ModelProto.FromString(path.read_bytes()), before.folder, before.base)
