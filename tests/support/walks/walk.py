"""One walk: what is pressed, and what must not be after it: an exception, a line too wide, a character that steers."""

import asyncio
import os
import random
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.cells import cell_len
from support.bench import Bench, end_jobs, while_it_runs
from support.walks.keys import MODAL, PAGES, SIZES, TEXTS, Keys, typed
from support.walks.places import Place
from textual.events import Key, Paste
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key

from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.workbench import Workbench, open_workbench

LIMIT = 60.0
"""Seconds after which a key that is not handled is a hang."""
_STEERS = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Walk:
    """A walk on one app; `steps` is what was done, the last first to blame."""

    def __init__(self, bench: Bench, chance: random.Random, steps: list[str], *, jobs: bool) -> None:
        self._bench, self._app, self._chance, self._steps = bench, bench.app, chance, steps
        self._keys = Keys(chance, jobs=jobs)

    async def run(self, count: int) -> int:
        """Do so many things, fewer where one ends the app; returns how many were done."""
        for done in range(count):
            if self._ended:
                return done
            await self._step()
            if not self._ended:
                self._look()
        return count

    @property
    def _ended(self) -> bool:
        return self._app._exit or not self._app.is_running

    async def _step(self) -> None:
        kind, chance = self._chance.random(), self._chance
        if kind < 0.08:
            await self._press(chance.choice(PAGES))
        elif kind < 0.42:
            await self._press(*self._keys.here(self._app.scopes()))
        elif kind < 0.56:
            await self._press(*self._keys.line(self._app.scopes()))
        elif kind < 0.64:
            await self._press(*self._keys.search())
        elif kind < 0.82 and self._app.page.SCOPE == "surgery":
            await self._press(*self._keys.edit())
        elif kind < 0.90:
            await self._press(*(chance.choice(MODAL) for _ in range(chance.choice((1, 1, 2, 5)))))
        elif kind < 0.93:
            await self._resize(*chance.choice(SIZES))
        elif kind < 0.96:
            await self._click()
        elif kind < 0.97:
            self._steps.append("paste")
            self._app.post_message(Paste(chance.choice((*TEXTS, "\n", "a\nb\n", "\x00"))))
            await self._press("enter")
        else:
            asked = ("question_mark", *typed(chance.choice(TEXTS)))
            others = (("ctrl+p", "down", "escape"), ("T",), ("escape", "escape"), ("j",) * 9, ("tab", "j", "G", "tab"))
            await self._press(*chance.choice((asked, *others)))

    async def _press(self, *keys: str) -> None:
        self._steps.append("+".join(keys))
        for key in keys:
            if self._ended:
                return
            await asyncio.wait_for(self._handled(key), LIMIT)

    async def _handled(self, key: str) -> None:
        self._app.keys.put(_event(key))
        while not (self._ended or self._app.keys.is_idle):
            await asyncio.sleep(0.001)
        if not self._ended:
            await self._app.settling.settled(frozenset((Waits.SHOWN, Waits.ROWS)))

    async def _resize(self, columns: int, rows: int) -> None:
        self._steps.append(f"{columns}x{rows}")
        await self._bench.pilot.resize_terminal(columns, rows)
        await self._app.settling.settled(frozenset((Waits.SHOWN, Waits.ROWS)))

    async def _click(self) -> None:
        size = self._app.size
        at = self._chance.randrange(size.width), self._chance.randrange(size.height)
        self._steps.append(f"click {at}")
        await self._bench.pilot.click(offset=at)

    def _look(self) -> None:
        for y, strip in enumerate(self._app.screen._compositor.render_strips()):
            text = "".join(segment.text for segment in strip)
            assert cell_len(text) == self._app.size.width, f"line {y} has {cell_len(text)} cells: {text!r}"
            steers = [char for char in text if unicodedata.category(char) in _STEERS]
            assert not steers, f"line {y} has {steers}: {text!r}"


def _event(key: str) -> Key:
    """The event of a key by its name or character, as a terminal's."""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    try:
        return Key(name, unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name))))
    except KeyError:
        return Key(name, key if len(key) == 1 else None)


def walk(place: Place, folder: Path, seed: int, count: int, *, jobs: bool = False) -> list[str]:
    """A walk of `count` steps on a fresh copy of a place; returns what was done.

    Raises what goes wrong in the app, with what was done in its notes. An app that is left is opened again.
    """
    steps: list[str] = []
    copy = place.copy(folder)
    with _environment(copy):
        try:
            asyncio.run(_apps(copy, random.Random(seed), count, steps, jobs))
        except BaseException as error:
            error.add_note(f"{place.name}, seed {seed}: {' '.join(steps)}")
            raise
    return steps


async def _apps(place: Place, chance: random.Random, count: int, steps: list[str], jobs: bool) -> None:
    model: Path | None = place.model if chance.random() < 0.95 else None
    job: int | None = None
    left = count
    while left > 0:
        app = open_workbench(model, place.home, job)
        left -= 1 + await _one(app, chance, left, steps, jobs)
        if app.next_model is not None:
            steps.append(f"<{app.next_model.name}>")
            model, job = app.next_model, app.next_job


async def _one(app: Workbench, chance: random.Random, count: int, steps: list[str], jobs: bool) -> int:
    async with app.run_test(size=chance.choice(SIZES[:4])) as pilot:
        bench = Bench(app, pilot)
        done = await while_it_runs(app, Walk(bench, chance, steps, jobs=jobs).run(count))
        if app.next_model is None:
            await end_jobs(app)
        return done


@contextmanager
def _environment(place: Place) -> Iterator[None]:
    """Files that are written by a name go to the walk's own folder, and nothing starts an editor."""
    was, before = Path.cwd(), dict(os.environ)
    os.environ.update(LAYERWISE_HOME=str(place.home), LAYERWISE_LEASES=str(place.home / "leases"), EDITOR="true",
                      HOME=str(place.work), TEXTUAL_ANIMATIONS="none", LAYERWISE_SLOW_LINE="0")  # fmt: skip
    os.chdir(place.work)
    try:
        yield
    finally:
        os.chdir(was)
        os.environ.clear()
        os.environ.update(before)
