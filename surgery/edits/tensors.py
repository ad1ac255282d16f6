"""Graph inputs and outputs in the form that edits use."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
import onnx

from layerwise._tool.backends.tensors import to_onnx
from layerwise._tool.surgery.model.structure import Structure, changed
from layerwise._tool.surgery.types.incremental import types_of

Length = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Dim = Length | str | None


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A graph input or output. dtype "" and shape None: inferred. Dimensions are numbers, symbols or None."""

    name: str
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None

    def value(self, structure: Structure) -> onnx.ValueInfoProto:
        """Return it as a value info. LayerwiseError if there is no such type."""
        known = types_of(structure).get(self.name) or structure.value(self.name)
        tensor = structure.initializers.get(self.name)
        if known is None and tensor is not None:
            known = onnx.helper.make_tensor_value_info(self.name, tensor.data_type, tensor.dims)
        value = changed(known) if known is not None else onnx.ValueInfoProto(name=self.name)
        if self.dtype:
            value.type.tensor_type.elem_type = to_onnx(self.dtype)
        if self.shape is not None:
            set_shape(value, self.shape)
        return value


def set_shape(value: onnx.ValueInfoProto, shape: Iterable[Dim]) -> None:
    """Change the shape of a value info (in place)."""
    dims = value.type.tensor_type.shape
    dims.SetInParent()
    del dims.dim[:]
    for dim in shape:
        if isinstance(dim, int):
            dims.dim.add(dim_value=dim)
        else:
            dims.dim.add(dim_param=dim or None)
