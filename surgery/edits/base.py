"""Base classes of all edits."""

from typing import Any, ClassVar

import msgspec
import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.operands import spelled
from layerwise._tool.surgery.model.structure import Graph, Scope, Structure

_VERSION_OF_NEW_DOMAIN = 1
_WEIGHTS_NEED_NOT_BE_INPUTS = 4  # from this IR version on


class EditError(LayerwiseError):
    """An edit does not fit the model; the message says which one, and why."""

    def __init__(self, edit: "Edit", reason: str) -> None:
        super().__init__(f"{edit.describe()}: {reason}")
        self.edit, self.reason = edit, reason


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="edit", omit_defaults=True):
    """One change to a model, as a value: JSON with its kind under "edit". Nodes are given by name or first output.

    scope: the graph that is changed, as a `surgery.model.structure.Scope`.
    """

    def __post_init__(self) -> None:
        for field in ("attributes", "value"):
            value = getattr(self, field, None)
            if isinstance(value, float | list | dict):
                msgspec.structs.force_setattr(self, field, spelled(value))

    heavy: ClassVar[bool] = False
    """It takes long, or needs an engine: run it where native code may crash; a history keeps its result."""

    def apply(self, structure: Structure) -> Structure:
        """Return the changed model; the given one is unmodified. EditError if the edit does not fit."""
        try:
            return _listed(structure, self._applied(structure))
        except EditError:
            raise
        except LayerwiseError as error:
            raise EditError(self, str(error)) from None

    def describe(self, called: Called = in_full) -> str:
        """Return the edit in words, escaped. called: how the names in it are shown."""
        raise NotImplementedError

    def _applied(self, structure: Structure) -> Structure:
        raise NotImplementedError


class GraphEdit(Edit, frozen=True, kw_only=True):
    """An edit of one graph: the main one, or the body or function at `scope`. A new `domain` is imported."""

    scope: Scope = ()

    def _applied(self, structure: Structure) -> Structure:
        result = structure.at(self.scope, self._changed)
        domain = getattr(self, "domain", None)
        if domain and domain not in result.opsets:
            return result.with_(opsets={**result.opsets, domain: _VERSION_OF_NEW_DOMAIN})
        return result

    def _changed(self, graph: Graph) -> Graph:
        raise NotImplementedError


def _listed(before: Structure, after: Structure) -> Structure:
    """Return the model with new weights as graph inputs too, as IR versions before 4 require."""
    if after.ir_version >= _WEIGHTS_NEED_NOT_BE_INPUTS or after.initializers is before.initializers:
        return after
    known = {value.name for value in after.inputs}
    new = [tensor for name, tensor in after.initializers.items() if name not in known | before.initializers.keys()]
    values = (onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in new)
    return after.with_(inputs=(*after.inputs, *values)) if new else after


def listed(names: Any, called: Called = in_full, limit: int = 3) -> str:
    """Return a few names as text."""
    names = list(names)
    text = ", ".join(called(name) for name in names[:limit])
    return f"{text} and {len(names) - limit} more" if len(names) > limit else text


def place(scope: Scope) -> str:
    """Return a scope as text to append."""
    return f" in {shown('/'.join(scope), 100)}" if scope else ""
