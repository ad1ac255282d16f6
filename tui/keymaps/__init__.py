"""The user's own keys: `keymap.json` in the workspace, `{"command id": "key,key"}`."""

import os
from dataclasses import replace
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import REGISTRY

_MOST = 1 << 20  # bytes


def read_keymap(path: Path) -> dict[str, str]:
    """Keys by command id; none without a file. Raises BadFile for JSON of another form or an unknown command."""
    try:
        keymap = msgspec.json.decode(read_file(path, _MOST), type=dict[str, str]) if os.path.lexists(path) else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(path, str(error)) from error
    unknown = [id for id in keymap if id not in REGISTRY]
    if unknown:
        raise BadFile(path, f"no command {shown(unknown[0], 60)!r}; ids look like graph.mark")
    return keymap


def use_keymap(keymap: dict[str, str]) -> None:
    """Let the registry, and with it footer and help, show the user's keys."""
    for id, keys in keymap.items():
        REGISTRY[id] = replace(REGISTRY[id], keys=keys)
