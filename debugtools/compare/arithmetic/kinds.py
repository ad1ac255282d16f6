"""Which arithmetic a pair of dtypes is compared in."""

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, is_floating

Kind = Literal["float", "int", "wide", "complex", "string", "none"]
_WIDENED = {
    "float16": "float32",
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
}
_INTEGERS = frozenset("biu")


class Arithmetic(Struct, frozen=True):
    """kind: 'float' works in `work`; 'int' in int64 (exact up to 32 bits); 'wide' in uint64 magnitudes.

    epsilon: exact zeros of the second side are replaced before dividing (floating second side only).
    """

    kind: Kind
    work: Any = None
    epsilon: bool = False


@lru_cache(256)
def arithmetic(first: np.dtype[Any], second: np.dtype[Any]) -> Arithmetic:
    """Choose exact integers where both sides are integers or bool, else Polygraphy's promotion.

    float16 is widened to float32, small integers to int32, uint32 to int64, then NumPy's promotion applies; bfloat16,
    FP8 and FP4 go to float32, 4-bit integers to int32. 'none': a string against a number.
    """
    names = dtype_name(first), dtype_name(second)
    if "string" in names:
        return Arithmetic("string" if names[0] == names[1] else "none")
    wide = [_widened(name, dtype) for name, dtype in zip(names, (first, second), strict=True)]
    if any(dtype.kind not in "biufc" for dtype in wide):
        return Arithmetic("none")
    epsilon = wide[1].kind in "fc"
    if all(dtype.kind in _INTEGERS for dtype in wide):
        narrow = all(dtype.itemsize <= 4 or name == "uint32" for name, dtype in zip(names, wide, strict=True))
        return Arithmetic("int" if narrow else "wide")
    work = np.result_type(*wide)
    if work.kind == "c":
        return Arithmetic("complex", np.dtype(np.complex128), epsilon)
    return Arithmetic("float", work, epsilon)


def _widened(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if name in _WIDENED:
        return np.dtype(_WIDENED[name])
    if name in EXTENDED_NAMES:
        return np.dtype(np.float32 if is_floating(name) else np.int32)
    return dtype.newbyteorder("=")
