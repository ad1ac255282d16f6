"""Text about objects."""

import math
from collections.abc import Sequence
from typing import Any

from layerwise.constants import TAB
from layerwise.util.matching import is_inf, is_nan


class _Inline(str):
    """Text that is its own representation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def indent_block(block: Any, level: int = 1) -> str:
    """The text of an object, each line indented by so many tabs."""
    tab = TAB * level
    return tab + f"\n{tab}".join(str(block).splitlines())


def handle_special_repr(obj: Any) -> Any:
    """An object whose representation is Python that makes it again, where infinities and NaN are in it."""
    if is_nan(obj) or is_inf(obj):
        return _Inline(f"float('{float(obj) if math.isnan(obj) else obj}')")
    if type(obj) is dict:
        return {handle_special_repr(key): handle_special_repr(value) for key, value in obj.items()}
    return type(obj)(map(handle_special_repr, obj)) if type(obj) in (tuple, list, set) else obj


def apply_repr(obj: Any) -> str:
    """The representation of an object, as `handle_special_repr` has it."""
    return repr(handle_special_repr(obj))


def make_repr(type_str: str, *args: Any, **kwargs: Any) -> tuple[str, bool, bool]:
    """The text of a call, without keyword arguments that are None; whether all positional arguments are None, and
    whether no keyword argument is left.
    """
    positional = [apply_repr(arg) for arg in args]
    named = [f"{key}={apply_repr(value)}" for key, value in kwargs.items() if value is not None]
    return f"{type_str}({', '.join(positional + named)})", all(text == "None" for text in positional), not named


def str_from_layer(
    prefix: str, index: int, name: str, op: Any, input_names: Sequence[str], input_meta: Any,
    output_names: Sequence[str], output_meta: Any,
) -> str:  # fmt: skip
    """A layer with the types and shapes of what it reads and makes."""
    level = 1 if input_names and output_names else 0
    made = indent_block(_tensors(output_names, output_meta), level=level).strip()
    text = f"{prefix} {index:<4} | {name} [Op: {op}]\n{indent_block(_tensors(input_names, input_meta))}"
    between = "\n" if level else ""
    return text + between + indent_block(f" -> {made}", level=level) + "\n"


def _tensors(names: Sequence[str], meta: Any) -> str:
    return "{" + ",\n ".join(f"{name} {meta[name]}".strip() for name in names) + "}"
