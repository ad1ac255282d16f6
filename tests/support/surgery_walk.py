"""Random edits, previews, escapes, undos, folds and moves in Surgery, beside a plain model of where the cursor is.

`python -m tests.support.surgery_walk --count 300` makes so many walks; exit code 1 if the cursor is elsewhere once.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.bench import Bench, chain_pair, with_bench
from support.edit_models import nested_model

LOOKS = (
    ("e", "d"), ("e", "i", *"Relu", "enter"), ("e", "r", *"Tanh", "enter"), ("e", "o"), ("e", "x", "t"),
    ("e", "x", "a"),
    ("e", "n", "ctrl+u", *"rename n7", "enter"), ("e", "a", *"alpha=1", "enter"), ("full_stop",), ("e", "escape"),
)  # fmt: skip
MOVES = (
    ("j",), ("j",), ("k",), ("g",), ("G",), ("ctrl+d",), ("ctrl+u",), ("number_sign", "3", "j"), ("n",), ("N",), ("c",),
    ("p",), ("left_square_bracket",), ("right_square_bracket",), ("slash", "ctrl+u", *"tanh", "enter"),
    ("slash", "ctrl+u", *"op:Add", "enter"), ("slash", "ctrl+u", "enter"),
    ("colon", *"goto 3", "enter"), ("colon", *"-2", "enter"),
)  # fmt: skip
FOLDS = (("z",), ("m",), ("Z",))
MARKS = (("space",), ("space",), ("minus",), ("v",), ("v", "space"), ("asterisk",), ("colon", *"mark *", "enter"))
ASIDE = (
    ("D", "n", "N", "escape"), ("D", "G", "tab", "j", "escape"), ("H", "j", "k", "D", "escape"), ("H", "g", "enter"),
    ("H", "j", "j", "enter"), ("H", "u", "escape"), ("colon", *"delete ", "tab", "tab", "escape"),
    ("colon", *"attr ", "tab", "escape"), ("colon", *"rename-tensor ", "tab", "ctrl+c"), ("1", "j", "5"),
    ("tab", "tab"),
)  # fmt: skip


@dataclass
class Plain:
    """A list of nodes and one of them: what the keys say of the cursor, without rows, folds or widgets."""

    order: list[int]
    node: int

    def take(self, order: list[int]) -> None:
        """Another graph: the same node, else the next that is left of those after it, else the last before."""
        place = self.order.index(self.node)
        left = set(order)
        after = [node for node in self.order[place:] if node in left]
        before = [node for node in self.order[:place] if node in left]
        self.order, self.node = order, (after or before[::-1])[0]


class Walk:
    """One walk in the app; `steps` is what was pressed."""

    def __init__(self, bench: Bench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance
        self.surgery = bench.app.state.surgery
        self.steps: list[str] = []

    async def run(self, count: int) -> None:
        """Press keys; AssertionError where the cursor is not where the plain model says."""
        await self._press("x")
        await self.bench.until(lambda: self.surgery.opened)
        self.plain = Plain(self._order(), self._node())
        for _ in range(count):
            await self._step()

    async def _step(self) -> None:
        kind = self.chance.random()
        if kind < 0.3:
            await self._press(*self.chance.choice(MOVES))
            self.plain.node = self._node()  # a move of the user
        elif kind < 0.4:
            await self._press(*self.chance.choice(FOLDS))
        elif kind < 0.47:
            await self._press(*self.chance.choice(MARKS))
        elif kind < 0.55:
            await self._press(*self.chance.choice(ASIDE))
        elif kind < 0.8:
            await self._look()
        else:
            await self._press(self.chance.choice(("escape", "enter", "u", "ctrl+r")) if self._waits() else self._back())
        self.plain.take(self._order())
        if self.bench.app.page.main_list.model.rows.narrowed:  # the cursor is on rows of the filter alone
            self.plain.node = self._node()
        self._check()

    async def _look(self) -> None:
        before, page = self.surgery.preview, self.bench.app.page
        rows, cursor = page.main_list.model.rows, page.main_list.cursor
        meant = rows.nodes_at(cursor) if cursor < len(rows) else []
        keys = self.chance.choice(LOOKS)
        idle = keys == ("e", "escape") or (keys == ("full_stop",) and self.surgery.last is None)
        await self._press(*keys)
        refused = before is not None and self.surgery.preview is before
        if self.surgery.overlay is not None and not idle and not refused:  # what was on view is left first
            self.plain.take([int(node) for node in self.surgery.overlay.order])
        preview = self.surgery.preview
        if before is None and preview is not None and preview.edits[0].__class__.__name__ == "DeleteNodes":
            labels = {preview.before.label(node) for node in meant}
            named = {name for edit in preview.edits for name in getattr(edit, "nodes", ())}
            assert self.surgery.session.marks or not named or named <= labels or self.steps[-1] == "full_stop", (
                f"{named} for {labels}: {self.steps}"
            )

    def _waits(self) -> bool:
        return self.surgery.preview is not None

    def _back(self) -> str:
        return self.chance.choice(("u", "ctrl+r", "escape"))

    async def _press(self, *keys: str) -> None:
        self.steps.append("+".join(keys))
        await self.bench.press(*keys)
        if self.bench.app.screen.is_modal:  # what did not fit left a choice open
            await self.bench.press("escape")
        if self.bench.app.page.SCOPE != "surgery":  # what was to be left asked for something first
            await self.bench.press("5")

    def _order(self) -> list[int]:
        index = self.surgery.session.index
        assert index is not None
        return [int(node) for node in index.order]

    def _node(self) -> int:
        return self.surgery.session.node

    def _check(self) -> None:
        page = self.bench.app.page
        rows, cursor = page.main_list.model.rows, page.main_list.cursor
        assert self._node() == self.plain.node, f"on {self._node()}, not {self.plain.node}: {self.steps}"
        assert not len(rows) or rows.stands_for(cursor, self._node()), (
            f"row {cursor} is not of {self._node()}: {self.steps}"
        )


def walk(model: Path, seed: int, count: int, root: Path) -> None:
    """One walk of `count` steps on a fresh workspace."""

    async def story(bench: Bench) -> None:
        made = Walk(bench, random.Random(seed))
        try:
            await made.run(count)
        except BaseException as error:
            error.add_note(str(made.steps))
            raise

    with_bench(model, story, root=root)


MODELS: tuple[Callable[[Path], Path], ...] = (
    lambda folder: chain_pair(folder)[0],
    lambda folder: nested_model(folder / "nested.onnx"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=1e9, help="no further walk after so many")
    options = parser.parse_args()
    bad, done, started = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="walk-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        models = [make(folder) for make in MODELS]
        for number in range(options.seed, options.seed + options.count):
            try:
                walk(models[number % len(models)], number, options.steps, folder / f"home{number}")
            except Exception as error:
                bad += 1
                print(f"#{number}: {error!r} {getattr(error, '__notes__', '')}", flush=True)
            done += 1
            if time.monotonic() - started > options.minutes * 60:
                break
    print(f"{done} walks of {options.steps} steps, {bad} with the cursor elsewhere")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
