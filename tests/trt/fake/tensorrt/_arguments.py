"""Which Python values pybind11 takes for a recorded type, and the overload that a call picks."""

import re
from typing import Any

import numpy as np

from ._recording import Signature, split

CLASSES: dict[str, type] = {}
INTEGERS = (int, np.integer)
NUMBERS = (int, float, np.integer, np.floating)
_PLAIN: dict[str, Any] = {
    "str": (str, bytes),
    "bytes": bytes,
    "tuple": tuple,
    "list": list,
    "slice": slice,
    "numpy.ndarray": np.ndarray,
}
_CONTAINER = re.compile(r"(Sequence|list|Iterable|tuple)\[(.*)\]$")


class Mismatch(TypeError):
    """A value that pybind11 would not take."""


def convert(value: Any, kind: str) -> Any:
    """The value as the recorded type, implicit conversions included.

    Raises:
        Mismatch: the real bindings would refuse it.
    """
    if kind in ("SupportsInt", "int"):
        handle = kind == "SupportsInt" and hasattr(type(value), "getPtr")  # of cuda-python: has __int__ alone
        return _checked(value, isinstance(value, INTEGERS) or hasattr(type(value), "__index__") or handle, int)
    if kind in ("SupportsFloat", "float"):
        return _checked(value, isinstance(value, NUMBERS), float)
    if kind == "bool":
        return _checked(value, isinstance(value, (bool, int, np.bool_)), bool)
    if kind in _PLAIN:
        return _checked(value, isinstance(value, _PLAIN[kind]), lambda v: v)
    if kind == "Buffer":
        return _checked(value, _is_buffer(value), lambda v: v)
    if kind == "Callable":
        return _checked(value, callable(value), lambda v: v)
    if container := _CONTAINER.match(kind):
        return _items(value, container[1], container[2])
    return _instance(value, kind)


def _checked(value: Any, good: bool, made: Any) -> Any:
    if not good:
        raise Mismatch
    return made(value)


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _items(value: Any, container: str, inner: str) -> Any:
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__len__") or container == "Iterable"):
        raise Mismatch
    if container == "tuple":
        kinds = split(inner)
        return _checked(value, len(value) == len(kinds), lambda v: [convert(x, k) for x, k in zip(v, kinds)])  # noqa: B905
    return [convert(item, inner) for item in value]


def _instance(value: Any, kind: str) -> Any:
    """A class of the module: an instance, None where a pointer may be null, or what converts implicitly."""
    wanted = CLASSES.get(kind.rpartition(".")[2] if kind not in CLASSES else kind)
    if kind == "Severity":
        wanted = CLASSES["ILogger.Severity"]
    if wanted is None or kind == "object":
        return value
    if isinstance(value, wanted):
        return value
    implicit = getattr(wanted, "_implicit", None)
    if implicit is not None:
        return implicit(value)
    if value is None and not hasattr(wanted, "_members"):
        return None
    raise Mismatch


def bind(overload: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of one overload in its order, converted, defaults filled in.

    Raises:
        Mismatch: the overload does not take them.
    """
    if len(args) > len(overload.parameters):
        raise Mismatch
    left = dict(kwargs)
    bound = []
    for at, parameter in enumerate(overload.parameters):
        if at < len(args):
            bound.append(convert(args[at], parameter.type))
        elif parameter.name in left:
            bound.append(convert(left.pop(parameter.name), parameter.type))
        elif parameter.default is not None:
            bound.append(default(parameter.default, parameter.type))
        else:
            raise Mismatch
    if left:
        raise Mismatch
    return bound


def default(text: str, kind: str) -> Any:
    """A recorded default: None, '', a number, a bool, or an enum member shown as <Severity.WARNING: 2>."""
    if text.startswith("<"):
        members: Any = CLASSES[kind]
        return getattr(members, text.partition(".")[2].partition(":")[0])
    return {"None": None, "''": "", "True": True, "False": False}.get(text, text) if not text.isdigit() else int(text)


def resolve(
    where: str, overloads: list[Signature], args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any = None
) -> list[Any]:
    """The converted arguments of the first overload that takes them; where forwarding is on, the real one is asked too.

    Raises:
        TypeError: none does, in pybind11's words.
    """
    for overload in overloads:
        try:
            return bind(overload, args, kwargs)
        except Mismatch:
            continue
    listed = "\n".join(f"    {n}. {o.text}" for n, o in enumerate(overloads, 1))
    got = ", ".join([repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()])
    raise TypeError(
        f"{where}(): incompatible function arguments. The following argument types are supported:\n"
        f"{listed}\n\nInvoked with: {got}"
    )
