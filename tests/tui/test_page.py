"""What all pages do alike."""

import asyncio
from pathlib import Path

import pytest
from support.big_graph import chain_model
from textual.css.query import NoMatches

from tui.screens.page import Page
from tui.workbench import open_workbench


def test_work_that_misses_a_part_of_a_page_that_stays_is_told(tmp_path: Path) -> None:
    async def miss() -> None:
        app = open_workbench(chain_model(tmp_path / "m.onnx", 7), tmp_path / "home")
        async with app.run_test(size=(120, 40)) as pilot:
            await app.show_page("surgery")
            page = app.query_one("#page-surgery", Page)

            async def work() -> None:
                page.query_one("#nothing")

            page.run_latest("work", work)
            for _ in range(50):
                await pilot.pause()

    with pytest.raises(NoMatches):
        asyncio.run(miss())
