"""Changing the user's own file of settings: one line of it, the rest stays as it was written."""

import json
import os
import re
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.formats.toml import MOST, parse_toml, read_toml
from layerwise._tool.backends.text import shown

_HEADER = re.compile(r"\s*\[\s*keys\s*\]\s*(#.*)?$")


def write_key(path: Path, id: str, keys: str | None) -> None:
    """Have a file of settings give a command these keys; None: its own again.

    Raises LayerwiseError if the file cannot be changed so, OSError from the file system.
    """
    there = os.path.lexists(path)
    before = read_toml(path) if there else {}
    text = _changed(read_file(path, MOST).decode() if there else "", id, keys)
    if _without(parse_toml(text, path), id) != _without(before, id):
        raise LayerwiseError(f"{shown(str(path))}: its [keys] are written in a way of their own; change it by hand")
    make_folder(path.parent)
    atomic_write(path, text)


def _changed(text: str, id: str, keys: str | None) -> str:
    lines = text.splitlines()
    header = next((at for at, line in enumerate(lines) if _HEADER.match(line)), -1)
    entry = [] if keys is None else [f"{json.dumps(id)} = {json.dumps(keys)}"]
    if header < 0:
        lines += [*([""] if lines else []), "[keys]", *entry] if entry else []
        return "\n".join(lines) + "\n"
    end = next((at for at in range(header + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    own = re.compile(rf"""\s*["']?{re.escape(id)}["']?\s*=""")
    kept = [line for line in lines[header + 1 : end] if not own.match(line)]
    return "\n".join([*lines[: header + 1], *entry, *kept, *lines[end:]]) + "\n"


def _without(table: dict[str, Any], id: str) -> dict[str, Any]:
    """The settings but for one key, with keys as a flat table; empty tables left out."""
    keys = _flat(table.get("keys", {}))
    keys.pop(id, None)
    return {**{name: value for name, value in table.items() if name != "keys"}, **({"keys": keys} if keys else {})}


def _flat(table: Any, above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items() if isinstance(table, dict) else ():
        found.update(_flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value})
    return found
