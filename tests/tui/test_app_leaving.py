"""The app ends while the state changes and workers come back: nothing paints where its place is gone."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import Bench, chain_pair, run_story, with_bench
from support.big_graph import chain_model
from textual.worker import WorkerFailed

from layerwise._tool.tui.commands import in_scopes, run_command
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.signal import Signal
from layerwise._tool.tui.widgets.following import run_latest, run_work
from layerwise._tool.tui.widgets.lines import LineWidget
from layerwise._tool.tui.workbench import PAGES, Workbench, open_workbench


def every_signal(state: AppState) -> list[Callable[[], None]]:
    """What announces each change that there is."""
    owners = [state, state.session, state.surgery, state.surgery.session, state.jobs, state.debug, state.errors]
    owners.append(state.perf)
    found = [signal for owner in owners for signal in vars(owner).values() if isinstance(signal, Signal)]
    assert len(found) > 10
    return [lambda s=signal: s.emit() for signal in found if signal is not state.on_message]  # type: ignore[misc]


@pytest.mark.parametrize("scope", [page.SCOPE for page in PAGES])
def test_changes_that_come_while_the_parts_of_the_screen_go(
    scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)
    gone: list[LineWidget] = []

    async def story() -> None:
        app = open_workbench(model, tmp_path / "home")

        def changed(widget: LineWidget) -> None:
            gone.append(widget)
            for announce in every_signal(app.state):
                announce()
            app.state.say("a word")

        async with app.run_test(size=(120, 40)):
            await app.show_page(scope)
            monkeypatch.setattr(LineWidget, "on_unmount", changed, raising=False)

    run_story(story())
    assert gone


def on_page(app: Workbench) -> Page:
    return app.query(Page).first()


def test_work_that_ends_while_its_page_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)
    ended: list[str] = []

    async def story() -> None:
        app = open_workbench(model, tmp_path / "home")
        going = asyncio.Event()

        async def paint() -> None:
            try:
                await asyncio.shield(going.wait())
                on_page(app).query_one("#nowhere")
            finally:
                ended.append("painted")

        async with app.run_test(size=(120, 40)) as pilot:
            run_latest(on_page(app), "painting", paint)
            await pilot.pause()
            monkeypatch.setattr(LineWidget, "on_unmount", lambda _: going.set(), raising=False)

    run_story(story())
    assert ended


def test_work_that_finds_no_place_on_a_page_that_stays_is_an_error(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)

    async def story() -> None:
        app = open_workbench(model, tmp_path / "home")

        async def paint() -> None:
            on_page(app).query_one("#nowhere")

        async with app.run_test(size=(120, 40)) as pilot:
            run_work(on_page(app), "painting", paint)
            await pilot.pause()

    with pytest.raises(WorkerFailed, match="nowhere"):
        run_story(story())


def test_keys_for_pages_that_come_while_the_screen_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain_model(tmp_path / "m.onnx", 7)
    shown = [found for found in in_scopes(("global",)) if found.method.startswith("show_") and found.keys]
    assert len(shown) >= len(PAGES) - 2
    pressed: list[asyncio.Task[None]] = []

    async def story() -> None:
        app = open_workbench(model, tmp_path / "home")

        def press(widget: LineWidget) -> None:
            pressed.extend(asyncio.ensure_future(run_command(app, found)) for found in shown)

        async with app.run_test(size=(120, 40)):
            monkeypatch.setattr(LineWidget, "on_unmount", press, raising=False)
        await asyncio.gather(*pressed)

    run_story(story())
    assert pressed


def test_what_was_to_be_drawn_in_a_moment_is_dropped_when_its_widget_has_left(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.app.show_page("errors")
        screen = bench.app.query_one(ErrorsScreen)
        soon = screen.table._detail_soon
        await bench.pilot.pause()
        soon.touch()
        await screen.table.query("#errors-detail, #errors-beside").remove()
        bench.app.exit()
        soon.flush()

    with_bench(chain_pair(tmp_path)[0], story)
