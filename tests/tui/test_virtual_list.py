"""The list of any length: where cursor and view go, and what is painted."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from layerwise._tool.tui.commands import Command, in_scopes, run_command
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.widgets.virtual_list import FixedRows, VirtualList

HEIGHT = 20


class Numbers:
    """Rows that say which of them were asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def row(self, i: int, cells: int) -> Line:
        self.asked.append(i)
        return [(f"row {i}", "")]


class ListApp(App[None]):
    """One list on a screen."""

    def __init__(self, model: Numbers | FixedRows) -> None:
        super().__init__()
        self.list = VirtualList(model)
        self.seen: list[tuple[str, int]] = []

    def compose(self) -> ComposeResult:
        yield self.list

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        self.seen.append(("highlighted", event.index))

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        self.seen.append(("selected", event.index))


def drive(model: Numbers | FixedRows, act: Callable[[ListApp, Pilot[None]], Awaitable[None]]) -> ListApp:
    """Run `act` on a list of 20 lines and return the app as it was then."""

    async def run() -> ListApp:
        app = ListApp(model)
        async with app.run_test(size=(40, HEIGHT)) as pilot:
            await pilot.pause()
            await act(app, pilot)
            await pilot.pause()
        return app

    return asyncio.run(run())


def test_only_rows_on_screen_are_asked_for() -> None:
    model = Numbers(1_000_000)

    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press("G")

    app = drive(model, act)
    assert app.list.cursor == 999_999
    assert set(model.asked) <= {*range(HEIGHT), *range(1_000_000 - HEIGHT, 1_000_000)}


@pytest.mark.parametrize(
    ("keys", "cursor"),
    [
        (["j"], 1), (["down", "down", "k"], 1), (["k"], 0), (["G"], 99), (["end", "up"], 98), (["G", "g"], 0),
        (["end", "home"], 0), (["ctrl+d"], 10), (["ctrl+d", "ctrl+u"], 0), (["pagedown"], 19),
        (["pagedown", "pageup"], 0),
    ],
)  # fmt: skip
def test_keys_move_the_cursor(keys: list[str], cursor: int) -> None:
    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    assert drive(Numbers(100), act).list.cursor == cursor


def test_at_the_edge_the_view_moves_by_half_a_page() -> None:
    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press(*["j"] * HEIGHT)

    app = drive(Numbers(100), act)
    assert (app.list.cursor, app.list.top) == (HEIGHT, HEIGHT // 2)


def test_a_move_asks_for_two_rows_at_most_to_be_painted() -> None:
    model = Numbers(100)
    asked: list[int] = []

    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        model.asked.clear()
        await pilot.press("j")
        await pilot.pause()
        asked.extend(model.asked)

    drive(model, act)
    assert set(asked) == {0, 1}


def test_messages_tell_the_row() -> None:
    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press("j", "enter")

    assert drive(Numbers(5), act).seen == [("highlighted", 1), ("selected", 1)]


def test_an_empty_list_takes_every_key() -> None:
    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press("j", "k", "G", "g", "pagedown", "pageup", "ctrl+d", "enter")

    app = drive(FixedRows(), act)
    assert (app.list.cursor, app.seen) == (0, [])


def test_a_list_that_shrank_keeps_its_cursor_inside() -> None:
    model = Numbers(100)

    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.press("G")
        model.count = 7
        app.list.sync()

    app = drive(model, act)
    assert (app.list.cursor, app.list.top) == (6, 0)


def test_sync_paints_only_rows_that_changed() -> None:
    rows: list[Line] = [[(f"row {i}", "")] for i in range(10)]
    painted: list[int] = []

    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        original = app.list.render_line
        app.list.render_line = lambda y: painted.append(y) or original(y)  # type: ignore[method-assign,func-returns-value]
        rows[3] = [("another", "")]
        app.list.sync()
        await pilot.pause()

    drive(FixedRows(rows), act)
    assert set(painted) == {3}


KEYS = ("j", "k", "g", "G", "ctrl+d", "ctrl+u", "pagedown", "pageup")


@settings(max_examples=15)
@given(count=st.integers(1, 70), keys=st.lists(st.sampled_from(KEYS), max_size=25))
def test_the_cursor_is_always_on_screen(count: int, keys: list[str]) -> None:
    async def act(app: ListApp, pilot: Pilot[None]) -> None:
        for key in keys:
            await run_command(app.list, _command(key))
            assert 0 <= app.list.cursor < count
            assert app.list.top <= app.list.cursor < app.list.top + HEIGHT
            assert 0 <= app.list.top <= max(0, count - HEIGHT)

    drive(Numbers(count), act)


def _command(key: str) -> Command:
    return next(found for found in in_scopes(["list"]) if key in found.keys.split(","))
