"""Pages come to the front and go: what is on them stays as it was."""

from pathlib import Path

import pytest
from support.bench import run_story
from support.screens import FAMILIES, at_rest, errors_of, model_of
from textual.events import Resize

from layerwise._tool.tui.widgets.virtual_list import VirtualList
from layerwise._tool.tui.workbench import open_workbench


def test_no_page_is_laid_out_beside_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is lower for a moment scrolls, and stays so."""
    heights: dict[str | None, set[int]] = {}
    told = VirtualList.on_resize

    def resized(self: VirtualList, event: Resize) -> None:
        heights.setdefault(self.id, set()).add(self.size.height)
        told(self, event)

    monkeypatch.setattr(VirtualList, "on_resize", resized)
    names = FAMILIES["modules"]

    async def story() -> None:
        app = open_workbench(model_of(names, tmp_path / "m.onnx"), tmp_path / "home")
        async with app.run_test(size=(120, 40)) as pilot:
            while app.state.session.index is None:
                await pilot.pause(0.02)
            await errors_of(app, pilot, names, located=False)
            await app.show_page("errors")
            await at_rest(app, pilot, "verdict")
            listed = app.page.main_list
            listed.move_to(14)
            await at_rest(app, pilot)
            heights.clear()
            top = listed.top
            for page in ("surgery", "errors", "perf", "errors"):
                await app.show_page(page)
                await at_rest(app, pilot)
            assert {name: len(heights[name]) for name in ("nodes", "errors-list")} == {"nodes": 1, "errors-list": 1}
            assert (listed.cursor, listed.top) == (14, top)

    run_story(story())
