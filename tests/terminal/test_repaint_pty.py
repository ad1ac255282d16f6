"""Only changed lines are painted; what is on the terminal must be the same as after a full repaint."""

import random
from pathlib import Path

import pytest
from support.big_graph import chain_model
from support.jobs import until
from support.terminal import Terminal, app

KEYS = (
    "j", "j", "k", "G", "g", "pagedown", "ctrl+d", "ctrl+u", "space", "*", "-", "n", "N", "p", "c", "[", "]", "v", "+",
    "tab", "escape", "/relu", "/1", "enter", ":goto 30", "enter", "2", "1", "?", "escape", "y", "escape", "T",
)  # fmt: skip


def looks(terminal: Terminal, row: int) -> list[tuple[object, ...]]:
    """How the cells of a row are drawn; of a blank its background is seen, unless it is underlined or reversed."""
    cells = [terminal.screen.buffer[row][column] for column in range(terminal.screen.columns)]
    return [(cell.bg,) if cell.data == " " and not (cell.underscore or cell.reverse) else tuple(cell) for cell in cells]


def after_full_repaint(terminal: Terminal) -> str:
    terminal.screen.reset()
    terminal.press("\x0c")
    terminal.wait_for(lambda text: "[1 Graph]" in text and bool(text.splitlines()[-1].strip()))
    terminal.until_silent()
    return terminal.text


@pytest.mark.parametrize(("seed", "columns", "rows"), [(1, 120, 40), (2, 120, 20), (3, 80, 24), (4, 100, 14)])
def test_the_screen_is_what_a_full_repaint_shows(tmp_path: Path, seed: int, columns: int, rows: int) -> None:
    chosen = random.Random(seed)
    model = chain_model(tmp_path / "small.onnx", 60)
    with app(model, env={"LAYERWISE_HOME": str(tmp_path / "home")}, columns=columns, rows=rows) as terminal:
        terminal.wait_for("/Relu")
        for _ in range(3):
            keys = [chosen.choice(KEYS) for _ in range(15)]
            for key in keys:
                terminal.press(key)
                terminal.pump(0.05)
            for key in ("escape", "escape"):
                terminal.cost(key)
            until(lambda: terminal.cost("1") >= 0 and "[1 Graph]" in terminal.text)  # behind an escape it may be alt+1
            terminal.until_silent()
            drawn = [looks(terminal, row) for row in range(rows)]
            before, after = terminal.text.splitlines(), after_full_repaint(terminal).splitlines()
            if not after[-2].strip():  # a message goes at the first key after some seconds
                before[-2] = after[-2]
            assert before == after, keys
            again = [looks(terminal, row) for row in range(rows)]
            assert [row for row in range(rows) if drawn[row] != again[row] and row != rows - 2] == [], keys


def test_what_a_smaller_size_took_from_the_terminal_comes_back(tmp_path: Path) -> None:
    with app(chain_model(tmp_path / "small.onnx", 60), env={"LAYERWISE_HOME": str(tmp_path / "home")}) as terminal:
        terminal.wait_for("▸ Add #0 ◂")
        terminal.until_silent()
        before = terminal.text
        terminal.resize(70, 20)
        terminal.wait_for(lambda text: "◂" not in text and "/Relu" in text)
        terminal.resize(120, 40)
        terminal.wait_for(lambda text: text == before)
        terminal.screen.erase_in_display(2)
        terminal.resize(120, 40)  # no other size, as after another program has drawn
        terminal.wait_for(lambda text: text == before)
