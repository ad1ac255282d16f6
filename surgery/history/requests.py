"""Requests to the warm worker while a model is edited: apply edits that need an engine, and check whether a state is
valid.

The worker keeps the model's structure; earlier states are read from the history's own file.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.states import FileState, settled_state
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import read_value
from layerwise._tool.backends.tensors import format_shape
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits import EditError, apply_all, edit_from
from layerwise._tool.surgery.history.soundness import edit_problems
from layerwise._tool.surgery.history.tree import History
from layerwise._tool.surgery.model.lookups import difference
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.incremental import settled, types_of

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_MOST_TYPES = 1000
_known: dict[tuple[str, FileState], Structure] = {}


def answer_types(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Write types and shapes of the main graph's tensors. params: path, out (a file for a GraphProto with them as
    value_info). Answer: nothing.
    """
    graph = onnx.GraphProto()
    graph.value_info.extend(types_of(_structure(Path(params["path"]))).values())
    _write(params, graph.SerializeToString())
    return {}


def answer_result(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Write the result of edits. params: path, log (the history's file), at (the entry they follow), edits, out (a file
    for the structure), skip_misfits.

    Answer: misfits, [index, reason] of the edits that do not fit and were skipped. Without `skip_misfits` one that
    does not fit is an EditError.
    """
    structure, misfits = _history(params)[1].structure_at(int(params["at"])), []
    for place, edit in enumerate(map(edit_from, params["edits"])):
        try:
            structure = edit.apply(structure)
        except EditError as error:
            if not params.get("skip_misfits"):
                raise
            misfits.append([place, error.reason])
    _write(params, structure.proto().SerializeToString())
    return {"misfits": misfits}


def _write(params: dict[str, Any], data: bytes) -> None:
    out = Path(params["out"])
    make_folder(out.parent)
    atomic_write(out, data)


def answer_check(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Check whether the result of edits is valid. params: path, log, at, and one of edits, result (a file with their
    result) and to (an entry of the history).

    Answer: problems (texts); types: [tensor, before, after] of tensors in both whose type or shape changed; known: name
    -> [dtype, shape] of these and of new nodes' outputs.
    """
    before, history = _history(params)
    before = history.structure_at(int(params["at"]))
    after = _after(params, before, history)
    problems = edit_problems(before, settled(before, after))
    found = [f"{node}: {message}" if node else message for node, message in problems]
    types = changed_types(before, after)
    _, new = difference(before.nodes, after.nodes)
    names = {*(name for name, _, _ in types), *(name for node in new for name in node.output)}
    every = types_of(after)
    known = {name: _typed(every[name]) for name in names if name in every}
    return {"problems": found, "types": types, "known": known}


def _after(params: dict[str, Any], before: Structure, history: History) -> Structure:
    if "to" in params:
        return history.structure_at(int(params["to"]))
    if "result" in params:
        return _read(Path(params["result"]), before)
    return apply_all(before, map(edit_from, params["edits"]))


def _typed(value: onnx.ValueInfoProto) -> tuple[str, Any]:
    data = value.SerializeToString()
    known = read_value(data, 0, len(data))
    return known.kind, known.shape


def answer_write(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Save a state. params: path, log, at, out (the new model's file), overwrite. Answer: size in bytes.

    UsageError if a file is there already and may not be replaced.
    """
    base, history = _history(params)
    out = Path(params["out"])
    save(settled(base, history.structure_at(int(params["at"]))), out, overwrite=bool(params.get("overwrite")))
    return {"size": out.stat().st_size}


def answer_script(context: "JobContext", params: dict[str, Any]) -> dict[str, Any]:
    """Write the edits up to a state as an onnx-graphsurgeon script. params: path, log, at, out. Answer: nothing."""
    _history(params)[1].export_script(Path(params["out"]), int(params["at"]))
    return {}


def changed_types(before: Structure, after: Structure) -> list[tuple[str, str, str]]:
    """Return (tensor, before, after) of tensors whose type or shape differs, as text."""
    one, other = types_of(before), types_of(after)
    found = []
    for name, value in other.items():
        old = one.get(name)
        if old is not None and old is not value and old.type != value.type:
            found.append((name, _text(old), _text(value)))
    return found[:_MOST_TYPES]


def _text(value: onnx.ValueInfoProto) -> str:
    kind, shape = _typed(value)
    return f"{kind or 'untyped'} {format_shape(shape)}"


def _history(params: dict[str, Any]) -> tuple[Structure, History]:
    """Return the model as on file, and its history."""
    base = _structure(Path(params["path"]))
    return base, History(Path(params["log"]), base)


def _structure(path: Path) -> Structure:
    """The structure of a model, read anew once its file has changed."""
    try:
        state = settled_state(path)
    except OSError as error:
        raise UsageError(f"{shown(str(path))}: {error.strerror}") from None
    if state is not None and (known := _known.get((str(path), state))):
        return known
    _known.clear()
    with ModelFile(path) as model:
        found = Structure.open(model)
    if state is not None:
        _known[str(path), state] = found
    return found


def _read(path: Path, before: Structure) -> Structure:
    return Structure.from_proto(onnx.ModelProto.FromString(path.read_bytes()), before.folder, before.base)
