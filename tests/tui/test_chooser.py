"""Lists to choose from: nothing of them is cut, in whatever size the terminal gets while one is open."""

import asyncio
from pathlib import Path

import pytest
from support.bench import Bench, with_bench
from support.big_graph import chain_model

from layerwise._tool.tui.screens.chooser import Choice


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return chain_model(tmp_path / "m.onnx", 20)


def boxed(bench: Bench) -> str:
    """The words within the box, one space between them."""
    lines = [line.strip() for line in bench.text.splitlines()]
    return " ".join(" ".join(line.strip("│▌ ") for line in lines if line.startswith("│")).split())


TITLE = "What the next comparison of this model holds each of its tensors against (enter picks one)"
ROWS = ["the reference that the form names", "saved outputs of a run before this one, by their tensors' names", "none"]


async def ask(bench: Bench, filterable: bool) -> list[object]:
    picked: list[object] = []
    choices = [Choice([(row, "")], number) for number, row in enumerate(ROWS)]
    bench.app.page.choose(TITLE, choices, picked.append, filterable=filterable)
    await bench.see("What the next")
    return picked


@pytest.mark.parametrize("filterable", [False, True])
def test_title_and_rows_are_whole_after_each_change_of_size(filterable: bool, model: Path) -> None:
    async def story(bench: Bench) -> None:
        picked = await ask(bench, filterable)
        await bench.press("down")
        for size in ((40, 24), (120, 40), (60, 15), (80, 24)):
            await bench.pilot.resize_terminal(*size)
            await bench.until(lambda: all(text in boxed(bench) for text in (TITLE, *ROWS)))
        await bench.press("enter")
        assert picked == [1]

    with_bench(model, story, (100, 30))


def test_a_list_takes_the_height_of_a_terminal_that_grew_and_keeps_what_was_typed(model: Path) -> None:
    def inside(bench: Bench) -> int:
        return sum(line.strip().startswith("│") for line in bench.text.splitlines())

    async def story(bench: Bench) -> None:
        await bench.press("question_mark", *"undo")
        few = inside(bench)
        await bench.pilot.resize_terminal(120, 40)
        await bench.until(lambda: inside(bench) > few + 20)
        assert "/ undo" in bench.text and "fold equal" not in bench.text
        await bench.press("ctrl+u")
        await bench.see("fold equal blocks")

    with_bench(model, story, (60, 12))


def test_keys_reach_a_list_while_the_page_below_it_wants_to_be_laid_out(model: Path) -> None:
    async def story(bench: Bench) -> None:
        picked = await ask(bench, filterable=False)
        bench.app.screen_stack[0].refresh(layout=True)
        await asyncio.wait_for(bench.press("down", "down", "enter"), 20)
        assert picked == [2] and "[1 Graph]" in bench.text
        await bench.press("colon", *"keys", "enter")
        await bench.see("enter changes one")
        await asyncio.wait_for(bench.press("escape", "j"), 20)
        assert bench.app.page.main_list.cursor == 1

    with_bench(model, story, (80, 24))


@pytest.mark.parametrize("filterable", [False, True])
def test_keys_go_from_entry_to_entry_and_all_of_one_is_on_view(filterable: bool, model: Path) -> None:
    rows = [f"entry{number} " + "with words " * 12 + f"end{number}" for number in range(6)]

    async def story(bench: Bench) -> None:
        for keys, entry in (
            (["down"], 1), (["down"] * 2, 2), (["down"] * 9, 5), (["down"] * 9 + ["up"], 4), (["down", "up", "up"], 0),
            (["pagedown"] * 9, 5), (["pagedown"] * 9 + ["pageup"] * 9, 0),
        ):  # fmt: skip
            picked: list[object] = []
            choices = [Choice([(row, "")], number) for number, row in enumerate(rows)]
            bench.app.page.choose(TITLE, choices, picked.append, filterable=filterable)
            await bench.see("What the next")
            await bench.press(*keys)
            cursor = next(line for line in bench.text.splitlines() if "▌" in line)
            assert f"entry{entry}" in cursor and f"end{entry}" in boxed(bench)
            await bench.press("enter")
            assert picked == [entry]

    with_bench(model, story, (60, 15))


def test_keys_go_from_entry_to_entry_among_those_that_a_filter_leaves(model: Path) -> None:
    rows = [f"entry{number} {'odd' if number % 2 else 'even'} " + "with words " * 12 for number in range(6)]

    async def story(bench: Bench) -> None:
        picked: list[object] = []
        choices = [Choice([(row, "")], number) for number, row in enumerate(rows)]
        bench.app.page.choose(TITLE, choices, picked.append, filterable=True)
        await bench.see("What the next")
        await bench.press(*"odd", "down", "down", "down")
        cursor = next(line for line in bench.text.splitlines() if "▌" in line)
        assert "entry5" in cursor
        await bench.press("enter")
        assert picked == [5]

    with_bench(model, story, (60, 20))
