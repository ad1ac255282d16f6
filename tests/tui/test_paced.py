"""Frames of a slow line: none is lost."""

import asyncio
from typing import Any
from unittest.mock import patch

from textual.app import App, ComposeResult
from textual.widgets import Static

from layerwise._tool.tui.widgets.paced import PacedScreen


class Line:
    """A line that takes a frame some time after each change."""

    def wait(self, now: float) -> float:
        return 0.0 if self.free else 0.05

    def frame_sent(self, now: float) -> None: ...

    free = True


class OneText(PacedScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static("before")
        yield Static("second", id="second")


class Sent(App[None]):
    """sent: what went to the terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.slow_line, self.sent = Line(), ""

    def get_default_screen(self) -> OneText:
        return OneText()

    def _display(self, screen: Any, renderable: Any) -> None:
        if renderable is not None and not self._batch_count:
            self.sent += renderable.render_segments(self.console)


def test_a_frame_that_is_due_while_changes_are_collected_is_sent_behind_them() -> None:
    async def scenario() -> None:
        app = Sent()
        async with app.run_test() as pilot:
            screen: Any = app.screen
            while screen._dirty_widgets or screen._compositor._dirty_regions:
                await pilot.pause()
            app.slow_line.free, app.sent = False, ""
            screen.query(Static).first().update("after", layout=False)
            while screen._owed is None:
                await pilot.pause()
            owed = screen._owed
            app.slow_line.free = True
            with app.batch_update():
                while screen._owed is owed:
                    await asyncio.sleep(0.005)
            while screen._owed is not None:
                await asyncio.sleep(0.005)
            assert "after" in app.sent

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_what_changes_just_before_a_frame_is_sent_is_in_it() -> None:
    async def scenario() -> None:
        app = Sent()
        async with app.run_test() as pilot:
            screen: Any = app.screen
            while screen._dirty_widgets or screen._compositor._dirty_regions:
                await pilot.pause()
            app.slow_line.free, app.sent = False, ""
            screen.query(Static).first().update("after", layout=False)
            while screen._owed is None:
                await pilot.pause()
            second, timer = screen.query_one("#second", Static), screen._update_timer
            timer.pause()
            with patch.object(timer, "resume"):  # Textual has taken note of the change, and not yet looked at it
                second.update("changed", layout=False)
                while second not in screen._dirty_widgets:
                    await asyncio.sleep(0)
                app.slow_line.free = True
                screen._pay()
            await pilot.pause(0.1)
            assert "changed" in app.sent

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_frame_that_waited_shows_no_new_text_in_old_places() -> None:
    async def scenario() -> None:
        app = Sent()
        async with app.run_test() as pilot:
            screen: Any = app.screen
            while screen._dirty_widgets or screen._compositor._dirty_regions:
                await pilot.pause()
            app.slow_line.free, app.sent = False, ""
            second, timer = screen.query_one("#second", Static), screen._update_timer
            second.update("changed", layout=False)
            while screen._owed is None:
                await pilot.pause()
            timer.pause()
            with patch.object(timer, "resume"):  # Textual has taken note of both, and not yet looked at them
                screen.query(Static).first().styles.height = 5
                while not screen._layout_required:
                    await asyncio.sleep(0)
                app.slow_line.free = True
                screen._pay()
            assert second.region.y == 5
            await pilot.pause(0.1)
            assert "changed" in app.sent

    asyncio.run(asyncio.wait_for(scenario(), 60))
