"""Details that are longer than their pane say so."""

import asyncio

import pytest
from textual.app import App, ComposeResult

from layerwise._tool.tui.widgets.lines import DetailPane


class Details(App[None]):
    def compose(self) -> ComposeResult:
        yield DetailPane(id="details")


@pytest.mark.parametrize("text", ["short", "a line that is wider than the pane, with an \x1b in it"])
def test_an_arrow_says_that_more_lines_follow(text: str) -> None:
    async def story() -> None:
        app = Details()
        async with app.run_test(size=(30, 5)) as pilot:
            pane = app.query_one(DetailPane)
            pane.set_lines([[(text, "")] for _ in range(7)])
            await pilot.pause()
            ends = [pane.render_line(y).text[-1] for y in range(5)]
            assert ends[4] == "↓" and "↓" not in ends[:4]
            assert all(pane.render_line(y).cell_length == 30 for y in range(5))
            pane.scroll_lines(7)
            assert "↓" not in pane.render_line(4).text
            pane.set_lines([[(text, "")] for _ in range(5)])
            assert "↓" not in pane.render_line(4).text

    asyncio.run(story())
