"""Where LAYERWISE_FAKE_TRT_FORWARD is set, each call is made on the real bindings over stub libraries first.

Every object of the fake then has a counterpart made by the real module. What the real module answers is not used; that
it takes the call is: its TypeErrors and AttributeErrors are raised. With a file named in
LAYERWISE_FAKE_TRT_FORWARD_LOG, each call that was made there, or could not be, is written to it as a line
`forwarded|skipped Class.name`.
"""

import importlib.util
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

NOTHING = object()
_PLAIN = (int, float, str, bytes, bytearray, memoryview, bool, np.ndarray, np.generic)
_said: set[str] = set()


class _Unbacked(Exception):
    """An argument has no counterpart."""


@cache
def real() -> Any:
    """The real bindings; None where forwarding is off."""
    if not os.environ.get("LAYERWISE_FAKE_TRT_FORWARD"):
        return None
    place = Path(__file__).resolve().parents[2] / "stubs" / "load.py"
    spec = importlib.util.spec_from_file_location("_stub_load", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.bindings()


def _say(what: str, name: str) -> None:
    path = os.environ.get("LAYERWISE_FAKE_TRT_FORWARD_LOG")
    line = f"{what} {name}\n"
    if path and line not in _said:
        _said.add(line)
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line)


def _named(name: str) -> Any:
    found = real()
    for part in name.split("."):
        found = getattr(found, part)
    return found


def counterpart(value: Any) -> Any:
    """The real object of a fake one, deep in lists and tuples.

    Raises:
        _Unbacked: there is none.
    """
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(counterpart(item) for item in value)
    kind = type(value)
    if hasattr(kind, "_members"):
        return getattr(_named("ILogger.Severity" if kind.__name__ == "Severity" else kind.__name__), value.name)
    if any(base.__name__ == "IHostMemory" for base in kind.__mro__):
        return bytes(value)
    if not hasattr(kind, "_kinds"):
        return value
    return _object(value)


def _object(value: Any) -> Any:
    found = value.__dict__.get("_real", NOTHING)
    if found is not NOTHING:
        return found
    if "_state" in value.__dict__:
        return _object(value._state.network).get_layer(0)
    maker = _MAKERS.get(type(value).__name__)
    if maker is None:
        raise _Unbacked
    return maker(value)


_MAKERS: dict[str, Any] = {
    "ITensor": lambda value: _object(value._network).get_input(0),
    "Dims": lambda value: real().Dims(list(value._items)),
    "Permutation": lambda value: real().Permutation(list(value._items)),
    "Weights": lambda value: real().Weights(value._array),
    "TimingCacheKey": lambda value: real().TimingCacheKey.parse(value._text),
    "TimingCacheValue": lambda value: real().TimingCacheValue(value.tacticHash, value.timingMSec),
}


def _call(name: str, work: Any) -> Any:
    """Do it; only what says that the call itself is wrong is let through."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            result = work()
    except _Unbacked:
        _say("skipped", name)
        return NOTHING
    except (TypeError, AttributeError) as error:
        raise type(error)(f"the real bindings refuse {name}: {error}") from error
    except Exception:  # a stub's answer that the binding cannot use: its arguments were taken
        result = NOTHING
    _say("forwarded", name)
    return result


def method(item: Any, owner: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the same method of the real counterpart; NOTHING where there is none."""
    if real() is None:
        return NOTHING

    def work() -> Any:
        values = [counterpart(value) for value in args]
        named = {key: counterpart(value) for key, value in kwargs.items()}
        if name == "__init__":
            item._real = _named(owner)(*values, **named)
            return NOTHING
        return getattr(_as(item), name)(*values, **named)

    return _call(f"{owner}.{name}", work)


def _as(item: Any) -> Any:
    """The counterpart, seen as the class that a layer was turned into by setting its `__class__`."""
    found = _object(item)
    if "_state" in item.__dict__ and type(found).__name__ != type(item).__name__:
        found.__class__ = _named(type(item).__name__)
    return found


def static(owner: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the same static method."""
    if real() is None:
        return NOTHING
    return _call(
        f"{owner}.{name}",
        lambda: getattr(_named(owner), name)(*map(counterpart, args), **{k: counterpart(v) for k, v in kwargs.items()}),
    )


def get(item: Any, name: str) -> Any:
    """Read the same property."""
    if real() is None:
        return NOTHING
    return _call(f"{type(item).__name__}.{name}", lambda: getattr(_as(item), name))


def put(item: Any, name: str, value: Any) -> None:
    """Set the same property."""
    if real() is not None:
        _call(f"{type(item).__name__}.{name}=", lambda: setattr(_as(item), name, counterpart(value)))


def attach(result: Any, answer: Any) -> Any:
    """Remember what the real bindings returned as the counterpart of what the fake returns."""
    if answer is NOTHING or real() is None:
        return result
    if isinstance(result, (list, tuple)) and isinstance(answer, (list, tuple)):
        for ours, theirs in zip(result, answer, strict=False):
            attach(ours, theirs)
    elif hasattr(type(result), "_kinds") and type(answer).__name__ in {base.__name__ for base in type(result).__mro__}:
        result.__dict__.setdefault("_real", answer)
    return result
