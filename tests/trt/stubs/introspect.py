"""Print the API of the real bindings, compacted: run as a script with the environment of load.environment.

With a file's name as argument the recording is written there instead (how tests/trt/recorded was made).
"""

import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import compact
import load

_SPECIAL = ("__enter__", "__exit__", "__eq__", "__getitem__", "__init__", "__iter__", "__len__", "__setitem__")
_NUMBERED = re.compile(r"^\d+\. ")


def api(module: ModuleType) -> dict[str, Any]:
    """Every class, function and constant of the module."""
    found: dict[str, Any] = {"version": module.__version__, "classes": {}, "functions": {}, "constants": {}}
    for name, value in vars(module).items():
        if name.startswith("_") or inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            _class(value, name, found["classes"])
        elif callable(value):
            found["functions"][name] = _overloads(value, name)
        elif type(value).__module__.startswith("tensorrt"):
            found["constants"][name] = str(value)
    return found


def _overloads(value: Any, name: str) -> list[str]:
    """The overloads of a pybind11 function by its documentation; of a Python function its own signature."""
    if inspect.isfunction(value):
        return [f"python {inspect.signature(value)}"]
    lines = (value.__doc__ or "").splitlines()
    if len(lines) > 1 and lines[1].strip() == "Overloaded function.":
        texts = [_NUMBERED.sub("", line) for line in lines if _NUMBERED.match(line)]
    else:
        texts = lines[:1]
    return [compact.signature(text, name) for text in texts if text.startswith(f"{name}(")]


def _class(cls: Any, name: str, found: dict[str, Any]) -> None:
    if hasattr(cls, "__members__"):
        found[name] = _enum(cls)
        return
    entry: dict[str, Any] = {}
    found[name] = entry
    parts: dict[str, dict[str, Any]] = {part: {} for part in ("def", "static", "get", "set", "const", "alias")}
    for key, value in vars(cls).items():
        if not key.startswith("_") or key in _SPECIAL:
            _member(cls, name, key, value, parts, found)
    bases = [base.__name__ for base in cls.__bases__ if base.__module__.startswith("tensorrt")]
    if bases:
        entry["bases"] = bases
    if not parts["def"].get("__init__"):
        parts["def"].pop("__init__", None)
        entry["abstract"] = True
    entry |= {part: values for part, values in parts.items() if values}
    if parts["set"]:
        entry["set"] = sorted(parts["set"])


def _enum(cls: Any) -> dict[str, Any]:
    """Members and their values, and what was added beside them (DataType.itemsize)."""
    entry: dict[str, Any] = {"enum": {member: int(value) for member, value in cls.__members__.items()}}
    if "__lt__" in vars(cls):
        entry["ordered"] = True
    plain = {"name", "value", *entry["enum"]}
    added = {key: None for key in vars(cls) if not key.startswith("_") and key not in plain}
    return {**entry, "get": added} if added else entry


def _member(cls: Any, owner: str, key: str, value: Any, parts: dict[str, Any], found: dict[str, Any]) -> None:
    if inspect.isclass(value):
        full = f"{owner}.{key}"
        if value.__qualname__ == full:
            _class(value, full, found)
        else:
            parts["alias"][key] = value.__qualname__
    elif isinstance(value, property) or type(value).__name__ == "pybind11_static_property":
        _property(value, key, parts)
    elif isinstance(value, staticmethod):
        parts["static"][key] = _overloads(getattr(cls, key), key)
    elif callable(getattr(cls, key)):
        parts["def"][key] = _overloads(getattr(cls, key), key)
    else:
        parts["const"][key] = str(value)


def _property(value: Any, key: str, parts: dict[str, Any]) -> None:
    if value.fget is not None:
        doc = value.fget.__doc__ or ""
        parts["get"][key] = compact.type_name(doc.splitlines()[0].rpartition(" -> ")[2]) if "->" in doc else None
    if value.fset is not None:
        parts["set"][key] = True


if __name__ == "__main__":
    recording = api(load.bindings())
    if len(sys.argv) > 1:
        compact.dump(recording, Path(sys.argv[1]))
    else:
        print(json.dumps(recording))
