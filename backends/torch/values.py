"""Nested inputs and outputs of modules as tensors with names, and back.

An element of a list or tuple is `name.0`, of a dict `name.key`, of a dataclass or named tuple `name.field`. The values
of an output that is a dict, dataclass or named tuple go by their keys alone.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.torch_bridge import is_tensor

OUTPUT = "output"


def tensors(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors in a value, each with its name; what is none is left out."""
    if is_tensor(value):
        yield name, value
        return
    for key, part in parts(value):
        yield from tensors(f"{name}.{key}" if name else key, part)


def parts(value: Any) -> list[tuple[str, Any]]:
    """The parts of a container with their keys; [] for anything else."""
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple):
        return [(str(place), part) for place, part in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return []


def output_tensors(value: Any) -> dict[str, Any]:
    """The tensors that a module returns: `output` if one alone, `output.0`, … of a tuple, a dict's by its keys."""
    named = not isinstance(value, list) and (not isinstance(value, tuple) or hasattr(value, "_fields"))
    return dict(tensors("" if named and not is_tensor(value) else OUTPUT, value))


def replaced(name: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """The value with every tensor in lists, tuples and dicts replaced by what `change` makes of its name and itself."""
    if is_tensor(value):
        return change(name, value)
    if isinstance(value, Mapping) and type(value) is dict:
        return {key: replaced(f"{name}.{key}", part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        made = (replaced(f"{name}.{key}", part, change) for key, part in parts(value))
        return type(value)(*made)
    if isinstance(value, list | tuple):
        return type(value)(replaced(f"{name}.{place}", part, change) for place, part in enumerate(value))
    return value


def is_users(file: str) -> bool:
    """Whether a frame's file is neither torch's nor ours."""
    import torch

    return not file.startswith((str(Path(torch.__file__).parent), "<")) and "/_tool/" not in file


def first_sentence(error: BaseException, most: int = 500) -> str:
    """An error's text up to the first empty line: what torch adds behind it does not help here."""
    return str(error).strip().split("\n\n")[0][:most]


def listed(names: Sequence[str], most: int = 5) -> str:
    """A few names of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
