"""What is done next in a walk: drawn from the registry of commands as the screen in front has them."""

import random
from collections.abc import Sequence

from layerwise._tool.tui.commands import REGISTRY, Command, in_scopes

PAGES = ("0", "1", "2", "3", "4", "5", "5", "5", "6", "7", "R")
LEAVES = {"app.quit", "app.suspend", "app.mouse"}
"""What ends the app or leaves its terminal: tests of their own."""
STARTS = {
    "run.start", "perf.bench", "perf.bench_line", "jobs.retry", "debug.retry", "debug.start", "errors.locate",
    "errors.reduce", "errors.bisect", "errors.bundle", "debug.locate", "debug.reduce", "debug.bisect", "debug.by_hand",
    "debug.precision", "debug.triage", "debug.invariants", "debug.builds", "debug.bundle", "debug.prove", "debug.lens",
    "matrix.suspect", "matrix.retry", "surgery.try", "surgery.effect", "app.demo", "app.tour", "home.demo",
}  # fmt: skip
"""What runs models: only where jobs are asked for."""
TEXTS = (
    "", "9", "42", "0", "-3", "+5", "relu", "op:Add", "op:", "err>1e-3", "err>", "a b", "Relu", "x=1", "1", "*", "[",
    "(", "\\", "'", '"', "%s", "{node}", "a.onnx", "no/such/x.json", "~", "..", ".", "n7", "rename n7", "alpha=1.5",
    "t", "a", "fp16", "99999999999999999999", "1e400", "nan", "-", "--help", "\x1b[31m", "宽字", "🦆", "a" * 300,
    "Tanh", "sort", "shape=[1,2]", "name=x", "kind=", "i=0", "all", "max-abs", "off", "dark", "state:failed", "size>1",
    "job:1",
)  # fmt: skip
MODAL = (
    "enter",
    "enter",
    "escape",
    "down",
    "up",
    "tab",
    "backspace",
    "space",
    "y",
    "c",
    "m",
    "n",
    "j",
    "k",
    "end",
    "x",
)
KINDS = ("BatchNormalization", "If", "Loop", "Constant", "Relu", "Tanh", "MatMul", "Foo", "my::Inner")
SIZES = ((80, 24), (80, 24), (30, 10), (120, 40), (1, 1), (200, 60), (80, 2), (6, 24), (40, 12))
FILES = ("write", "write!", "export", "script", "log", "replay", "diff", "open", "bundle")


def typed(text: str) -> list[str]:
    """Textual's keys of a text."""
    names = {" ": "space", "\x1b": "escape"}
    return [names.get(char, char) for char in text]


def presses(found: Command) -> Sequence[str]:
    """The ways to press a command: keys, separated by blanks."""
    return [keys for keys in found.keys.split(",") if keys]


class Keys:
    """Draws what is done. jobs: whether what starts jobs is, too."""

    def __init__(self, chance: random.Random, *, jobs: bool) -> None:
        self._chance = chance
        self._never = LEAVES if jobs else LEAVES | STARTS

    def here(self, scopes: Sequence[str]) -> list[str]:
        """Keys of a command that there is now."""
        own = [found for found in in_scopes(scopes) if found.keys and found.id not in self._never]
        near = [found for found in own if found.scope not in ("list", "global")] or own
        found = self._chance.choice(near if self._chance.random() < 0.7 else own)
        return self._counted(self._chance.choice(presses(found)).split())

    def _counted(self, keys: list[str]) -> list[str]:
        if self._chance.random() < 0.08:
            return ["number_sign", *str(self._chance.choice((0, 1, 3, 12, 999999999999))), *keys]
        return keys

    def line(self, scopes: Sequence[str]) -> list[str]:
        """A `:` line of some command with some argument, perhaps completed by tab, perhaps given up."""
        chance = self._chance
        lines = [found for found in in_scopes(scopes) if found.id not in self._never]
        found = chance.choice(lines) if chance.random() < 0.9 else chance.choice([*REGISTRY.values()])
        if found.id in self._never:
            return ["colon", "escape"]
        text = chance.choice((*TEXTS, *KINDS)) if found.takes_argument or chance.random() < 0.1 else ""
        tabs = ["tab"] * chance.choice((0, 0, 1, 1, 2, 5))
        if found.name.rstrip("!") in FILES:
            text, tabs = chance.choice(("", "out.bin", "no/such/folder/x", "out.onnx", "a.csv", "a.svg")), tabs[:1]
        keys = [*typed(found.name), "space", *typed(text), *tabs]
        if chance.random() < 0.15:
            keys += [chance.choice(("left", "home", "end", "backspace", "ctrl+w", "ctrl+u", "up", "down", "delete"))]
            keys += typed(chance.choice(TEXTS))
        return ["colon", *keys, chance.choice(("enter", "enter", "enter", "escape", "ctrl+c"))]

    def search(self) -> list[str]:
        """A search or a filter."""
        end = self._chance.choice(("enter", "enter", "escape", "ctrl+c", "tab", "down"))
        return ["slash", *typed(self._chance.choice(TEXTS)), end]

    def edit(self) -> list[str]:
        """An edit of Surgery as it is typed, made or left."""
        chance = self._chance
        after = [chance.choice(("enter", "enter", "escape", "u", "ctrl+r", "full_stop", "j", "D", "H"))]
        op = chance.choice(KINDS)
        return [*chance.choice((
            ["e", "d"], ["e", "i", *op, "enter"], ["e", "r", *op, "enter"], ["e", "o"], ["e", "f"],
            ["e", "x", chance.choice("taub")], ["e", "p", chance.choice("fb")],
            ["e", "n", "ctrl+u", *typed("n7"), "enter"],
            ["e", "a", *typed(chance.choice(("alpha=1", "axis=x", "perm=[0]", "a", "=", "to=1"))), "enter"],
            ["full_stop"], ["e", "e", *typed(chance.choice(("", "f", "shape", "opset"))), "enter", "tab", "enter"],
            ["e", "t"], ["e", "i", "tab", "tab", "enter"], ["e", "a", "tab", "enter"],
        )), *after]  # fmt: skip
