"""Random sequences of keys over the whole registry of commands."""

import random
from collections.abc import Sequence

from support.walks import keys as walks

from layerwise._tool.tui import workbench
from layerwise._tool.tui.commands import REGISTRY, Command, in_scopes

PAGES = {"graph": "1", "errors": "2", "jobs": "3", "debug": "4", "surgery": "5", "perf": "6", "run": "R"}
NOT_TYPED = {"app.quit", "app.suspend", "app.open", "app.back", "app.mouse", "graph.source", "errors.source"}
"""What ends the app or leaves its terminal: tests of their own."""
WRITES = {"surgery.write", "errors.export", "run.script"}
"""What writes a file: by a line with a name of ours alone, never by a key and what happens to be typed after it."""
STARTS = walks.STARTS | {
    "perf.cancel", "jobs.cancel", "jobs.prune", "jobs.engine", "debug.cancel", "debug.answer", "jobs.answer",
}  # fmt: skip
"""What starts or ends jobs: how far these are when the next key is handled is another matter."""
NAMES = {
    "slash": "/", "question_mark": "?", "colon": ":", "asterisk": "*", "minus": "-", "left_square_bracket": "[",
    "right_square_bracket": "]", "full_stop": ".", "plus": "+", "less_than_sign": "<", "greater_than_sign": ">",
    "equals_sign": "=", "semicolon": ";", "number_sign": "#",
    "ctrl+l": "\x0c", "ctrl+f": "\x06", "ctrl+r": "\x12", "ctrl+t": "\x14", "ctrl+o": "\x0f",
}  # fmt: skip
"""What is sent for keys that support.terminal does not know."""
TEXTS = ("9", "42", "relu", "op:Add", "err>1e-3", "a b", "Relu", "x=1", "1")
MODAL = ("enter", "escape", "down", "up", "tab", "backspace", "space", "y", "c", "m")


def _keys(found: Command) -> list[list[str]]:
    return [[NAMES.get(part, part) for part in key.split()] for key in found.keys.split(",") if key]


def _scopes(page: str) -> tuple[str, ...]:
    return {"surgery": ("surgery", "graph")}.get(page, (page,))


def _commands(page: str) -> list[Command]:
    own = in_scopes((*_scopes(page), "list", "pane"))
    return [found for found in own if found.id not in NOT_TYPED | STARTS | WRITES and found.keys]


def _step(chance: random.Random, page: str) -> list[str]:
    """One thing that a user does on a page, or a few keys that may fit."""
    kind = chance.random()
    if kind < 0.62:
        return list(chance.choice(_keys(chance.choice(_commands(page)))))
    if kind < 0.72:
        return [chance.choice(MODAL)]
    if kind < 0.80 and any(found.keys == "slash" for found in in_scopes(_scopes(page))):  # else a text is commands
        return ["/", *chance.choice(TEXTS), *([chance.choice(("enter", "escape", "ctrl+c"))] * (chance.random() < 0.9))]
    if kind < 0.87:
        lines = [found for found in REGISTRY.values() if found.line and found.id not in NOT_TYPED | STARTS]
        text = chance.choice(TEXTS) if " " in (line := chance.choice(lines).line) else ""
        if line.startswith(("write", "export", "script", "log", "replay", "diff")):
            text = chance.choice(("out.bin", "no/such/folder/x"))
        return [":", *f"{line.partition(' ')[0]} {text}".strip(), chance.choice(("enter", "enter", "escape", "ctrl+c"))]
    if kind < 0.93:
        return [*chance.choice(("jj", "jjj", "kk", "9", "42"))]
    return [chance.choice(("enter", "escape", "?", "\x10", "T", "u", "\x12", "tab"))]


def draw(seed: int, steps: int | None = None) -> list[str]:
    """A sequence: pages are come to, and on each a few things are done; the last may start a job."""
    workbench.PAGES  # noqa: B018 (the registry is whole once it is imported)
    chance = random.Random(seed)
    page, keys = "graph", list[str]()
    for _ in range(steps or chance.randint(4, 14)):
        if chance.random() < 0.25:
            page = chance.choice([*PAGES, "surgery"])
            keys += [PAGES[page]]
        keys += _step(chance, page)
    if chance.random() < 0.15:
        start = REGISTRY[chance.choice(("run.start", "errors.locate"))]
        keys += ["escape", "escape", "escape", PAGES[start.scope], *_keys(start)[0]]
    return without_clashes(keys)


def without_clashes(keys: Sequence[str]) -> list[str]:
    """Keys that no program can tell from others: escape and then `[` or `O` are how a terminal writes other keys."""
    return [key for before, key in zip(["", *keys], keys, strict=False) if not (before == "escape" and key in "[O")]
