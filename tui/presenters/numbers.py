"""Numbers, sizes, times, types and shapes as short text."""

import math
import time
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Glyphs

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex


def sig(value: object, digits: int = 2) -> str:
    """A number in at most `digits` + 6 characters: `4.1e-03`, `12.5`, `0`, `nan`, `-inf`; `-` for none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "-"
    if math.isnan(value) or math.isinf(value):
        return str(float(value))
    if value == 0:
        return "0"
    if 0.1 <= abs(value) < 1000:
        return f"{value:.{digits + 1}g}"
    return f"{value:.{digits - 1}e}"


def span_text(seconds: float | None) -> str:
    """A duration as `0.4 s`, `12 s`, `3 min 20 s`, `5 h 10 min`, `3 days`; `-` for none."""
    if seconds is None or seconds < 0:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min {int(seconds % 60)} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days"


def clock_text(at: float, now: float) -> str:
    """A time of day as `12:41`, `21 Nov 12:41` where that was another day (local time)."""
    form = "%H:%M" if time.localtime(at)[:3] == time.localtime(now)[:3] else "%d %b %H:%M"
    return time.strftime(form, time.localtime(at))


def age_text(seconds: float) -> str:
    """An age in one unit: `now`, `40s`, `12m`, `5h`, `3d`."""
    if seconds < 1:
        return "now"
    for unit, scale in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= scale:
            return f"{int(seconds // scale)}{unit}"
    return f"{int(seconds)}s"


def shape_text(shape: Any, times: str = "x") -> str:
    """A shape as `1x128x768`; `scalar` without dimensions, `?` where unknown."""
    if not isinstance(shape, (list, tuple)):
        return "?"
    return times.join("?" if dim is None else shown(str(dim), 16) for dim in shape) or "scalar"


def index_text(index: Any) -> str:
    """An element's index as `(0, 17, 300)`, `-` for none."""
    if not isinstance(index, (list, tuple)):
        return "-"
    return f"({', '.join(str(part) for part in index)})"


def share_bar(part: float, cells: int, glyphs: Glyphs) -> str:
    """A bar that fills `part` (0 to 1) of `cells` cells, at least one where the part is not 0."""
    return glyphs.bars[-1] * max(1 if part > 0 else 0, round(cells * min(1.0, part)))


def bar(done: float, total: float, cells: int, full: str = "█", empty: str = "░") -> str:
    """A progress bar of `cells` cells; empty when the total is not known."""
    part = 0 if total <= 0 else round(cells * min(1.0, done / total))
    return full * part + empty * (cells - part)


_SHORT = {
    "float32": "f32", "float16": "f16", "float64": "f64", "bfloat16": "bf16", "bool": "bool", "string": "str",
    "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint4": "u4", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def short_dtype(dtype: str) -> str:
    """`f32` for float32; types without a short form as they are, `?` for an unknown one."""
    return _SHORT.get(dtype, shown(dtype, 24).replace("float", "f") or "?")


def tensor_type(index: "GraphIndex", tensor: int, glyphs: Glyphs) -> str:
    """`f32 1×12×128`; empty for an absent tensor."""
    if tensor < 0:
        return ""
    return f"{short_dtype(index.tensor_dtype(tensor))} {shape_text(index.tensor_shape(tensor), glyphs.times)}"
