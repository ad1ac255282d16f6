"""Types and shapes of tensors, short enough for a column."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.glyphs import Glyphs

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

    Dim = int | str | None

_SHORT = {
    "float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16", "bool": "bool", "string": "str",
    "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint4": "u4", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def short_dtype(dtype: str) -> str:
    """`f32` for float32; types without a short form as they are, `?` for an unknown one."""
    return _SHORT.get(dtype, shown(dtype, 24).replace("float", "f") or "?")


def shape_text(shape: "tuple[Dim, ...] | None", glyphs: Glyphs) -> str:
    """`1×12×128`; symbols by name, `?` for what is unknown, `scalar` for no dimensions."""
    if shape is None:
        return "?"
    if not shape:
        return "scalar"
    return glyphs.times.join("?" if dim is None else shown(str(dim), 16) for dim in shape)


def tensor_type(index: "GraphIndex", tensor: int, glyphs: Glyphs) -> str:
    """`f32 1×12×128`; empty for an absent tensor."""
    if tensor < 0:
        return ""
    return f"{short_dtype(index.tensor_dtype(tensor))} {shape_text(index.tensor_shape(tensor), glyphs)}"
