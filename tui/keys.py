"""The user's keys: which of them can be in force, presets, and how a key is written."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.tui.commands import REGISTRY, Command, key_name

PRESETS: dict[str, dict[str, str]] = {
    "vim": {},
    "arrows": {
        "list.down": "down", "list.up": "up", "list.top": "home", "list.bottom": "end", "list.half_down": "ctrl+down",
        "list.half_up": "ctrl+up", "list.page_down": "pagedown", "list.page_up": "pageup", "pane.down": "down",
        "pane.up": "up", "pane.page_down": "pagedown", "pane.page_up": "pageup", "pane.top": "home",
        "pane.bottom": "end", "run.next": "space,right", "run.previous": "left",
    },
    "counts": {
        "app.graph": "f1", "app.errors": "f2", "app.jobs": "f3", "app.debug": "f4",
        "app.surgery": "f5", "app.perf": "f6", "app.matrix": "f7",
    },
}  # fmt: skip
"""By name, keys by command id. vim: as declared. arrows: no letters to move. counts: digits begin a count, as in vim,
and the screens are on the keys F1 to F7."""

DECLARED: dict[str, str] = {}
"""The keys of commands that `put_in_force` changed, as they were."""


def written(keys: str) -> str:
    """Keys as Textual names them, from keys as a person writes them: `/` and `esc` too."""
    if keys == ",":
        return "comma"
    names = {key_name(name): name for name in _named()}
    return ",".join(" ".join(names.get(key, key) for key in part.split()) for part in keys.split(","))


def _named() -> list[str]:
    return [
        "slash", "question_mark", "colon", "asterisk", "minus", "left_square_bracket", "right_square_bracket",
        "number_sign",
        "full_stop", "plus", "underscore", "equals_sign", "less_than_sign", "greater_than_sign", "escape",
    ]  # fmt: skip


def usable(keymap: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The part of a keymap that can be in force, and a sentence for each entry that cannot.

    An entry cannot if there is no such command, or another command of the same screen keeps one of its keys.
    """
    given = {id: written(keys) for id, keys in keymap.items() if id in REGISTRY}
    problems = [f"keys: no command {shown(id, 60)!r} (:keys lists them)" for id in keymap if id not in REGISTRY]
    good = dict(given)
    for id in given:
        other = _other(id, good)
        if other is not None:
            shared, found = other
            problems.append(f"keys: {id} = {shown(key_name(shared), 30)!r} is the key of {found.id} ({found.title})")
            del good[id]
    return good, problems


def _other(id: str, keymap: Mapping[str, str]) -> tuple[str, Command] | None:
    """A key of a command that another one of its scope has, too, or that begins the other's keys; and that one."""
    mine = REGISTRY[id]
    wanted = _starts(keymap[id])
    for found in REGISTRY.values():
        if found.id == id or found.scope != mine.scope:
            continue
        keys = keymap.get(found.id, DECLARED.get(found.id, found.keys))
        for key in wanted:
            if any(_begins(key, one) or _begins(one, key) for one in _starts(keys)):
                return key, found
    return None


def _starts(keys: str) -> list[str]:
    return [key for key in keys.split(",") if key]


def _begins(key: str, other: str) -> bool:
    return f"{other} ".startswith(f"{key} ")


def put_in_force(keymap: Mapping[str, str]) -> None:
    """Let the registry, and with it footer and help, show these keys, and all other commands their own."""
    from dataclasses import replace

    for id, keys in DECLARED.items():
        if id in REGISTRY:
            REGISTRY[id] = replace(REGISTRY[id], keys=keys)
    DECLARED.clear()
    for id, keys in keymap.items():
        DECLARED[id] = REGISTRY[id].keys
        REGISTRY[id] = replace(REGISTRY[id], keys=keys)


def taken_keys(keymap: Mapping[str, str]) -> dict[str, list[str]]:
    """Key -> the commands that the user gave it to."""
    found: dict[str, list[str]] = {}
    for id, keys in keymap.items():
        for key in _starts(keys):
            found.setdefault(key, []).append(id)
    return found


_KEYMAP = 1 << 20  # bytes


def read_keymap(path: Path) -> dict[str, str]:
    """Keys by command id; none without a file. Raises BadFile for JSON of another form or an unknown command."""
    try:
        keymap = msgspec.json.decode(read_file(path, _KEYMAP), type=dict[str, str]) if os.path.lexists(path) else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFile(path, in_words(error)) from error
    unknown = [id for id in keymap if id not in REGISTRY]
    if unknown:
        raise BadFile(path, f"no command {shown(unknown[0], 60)!r}; ids look like graph.mark")
    return keymap
