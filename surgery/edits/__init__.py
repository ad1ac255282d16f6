"""Edits: changes to a model as values, each serialisable to JSON with its kind under "edit"."""

from collections.abc import Iterable
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.edits.attributes import RenameNode, RenameTensor, SetAttribute, SetOp
from layerwise._tool.surgery.edits.base import Edit, EditError
from layerwise._tool.surgery.edits.ends import (
    AddInput,
    DebugOutputs,
    MarkOutputs,
    SetInputs,
    SetOutputs,
    Tensor,
    UnmarkOutputs,
)
from layerwise._tool.surgery.edits.nodes import AddNode, Bypass, DeleteNodes, InsertNode, ReplaceNode
from layerwise._tool.surgery.edits.operands import Constant
from layerwise._tool.surgery.edits.patterns import InsertBetween, ReplacePattern
from layerwise._tool.surgery.edits.shapes import FreezeDims, SetBatch, SetShape, UpperBounds
from layerwise._tool.surgery.edits.weights import AddWeight, SetWeights, Sparsify
from layerwise._tool.surgery.edits.whole import (
    CleanUp,
    ConvertPrecision,
    Deduplicate,
    Extract,
    Fold,
    InferShapes,
    RemoveInputs,
    SetOpset,
    Toposort,
)
from layerwise._tool.surgery.model.structure import Structure

__all__ = ["AnyEdit", "Constant", "Edit", "EditError", "Tensor", "apply_all", "edit_from", "edits_from_json"]

AnyEdit = (
    DeleteNodes | Bypass | InsertNode | AddNode | ReplaceNode | ReplacePattern | InsertBetween
    | SetAttribute | SetOp | RenameNode | RenameTensor
    | MarkOutputs | UnmarkOutputs | SetOutputs | DebugOutputs | SetInputs | AddInput | RemoveInputs
    | SetShape | SetBatch | FreezeDims | UpperBounds
    | SetWeights | AddWeight | Sparsify
    | CleanUp | Toposort | Deduplicate | Extract | Fold | ConvertPrecision | SetOpset | InferShapes
)  # fmt: skip


def edit_from(value: Any) -> Edit:
    """Return the edit that a (decoded) JSON value describes. UsageError if it describes none."""
    try:
        edit: Edit = msgspec.convert(value, AnyEdit)
        msgspec.json.encode(edit)  # reject now what no file can hold
    except (msgspec.ValidationError, UnicodeError) as error:
        raise UsageError(f"this is no edit: {in_words(error)}") from None
    return edit


def edits_from_json(data: bytes | str) -> list[Edit]:
    """Return the edits in a JSON text: a list of edits, or one. UsageError if it is neither."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not JSON: {in_words(error, 200)}") from None
    return [edit_from(item) for item in (value if isinstance(value, list) else [value])]


def apply_all(structure: Structure, edits: Iterable[Edit]) -> Structure:
    """Apply edits in order. EditError at the first that does not fit."""
    for edit in edits:
        structure = edit.apply(structure)
    return structure
