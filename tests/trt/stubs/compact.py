"""The compact form of a recorded API: one JSON line a class, signatures without `self` and without module names."""

import json
import re
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
_MODULES = re.compile(
    r"tensorrt_bindings\.tensorrt\.|typing_extensions\.|typing\.|collections\.abc\.|nv\w+::(?:v_\d_\d::)?"
)
_SELF = re.compile(r"^\(self: [\w.]+(?:, )?")


def signature(text: str, name: str) -> str:
    """One overload as pybind11 documents it ("f(self: T, x: int) -> None"), without name, self and modules."""
    return _SELF.sub("(", _MODULES.sub("", text.strip().removeprefix(name)))


def type_name(text: str | None) -> str | None:
    """A type as documented, without its module."""
    return None if text is None else _MODULES.sub("", text)


def dump(api: dict[str, Any], path: Path) -> None:
    """Write a recorded API with one class, function or constant table a line."""
    lines = []
    for part, table in api.items():
        if isinstance(table, dict):
            rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(table[key], sort_keys=True)}" for key in sorted(table))
            lines.append(f"{json.dumps(part)}: {{\n{rows}\n}}")
        else:
            lines.append(f"{json.dumps(part)}: {json.dumps(table)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def load(version: int) -> dict[str, Any]:
    """The recorded API of TensorRT 10 or 11."""
    text = (RECORDED / f"api_{version}.json").read_text(encoding="utf-8")
    api: dict[str, Any] = json.loads(text)
    return api
