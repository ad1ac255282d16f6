"""The app on a 100,000-node graph in a real terminal: what it sends, how much memory it takes, what it keeps.

Bytes are counted from the key to 300 ms of silence, at 120x40. Times are benchmarks, not tests.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil
import pytest
from support.app_home import Home, big_home, home
from support.big_graph import chain_model
from support.terminal import Terminal, app

__all__ = ["big_home", "home"]


@pytest.fixture
def terminal(home: Home) -> Iterator[Terminal]:
    yield from opened(home, fresh=False)


@pytest.fixture
def fresh(home: Home) -> Iterator[Terminal]:
    yield from opened(home, fresh=True)


def opened(home: Home, *, fresh: bool) -> Iterator[Terminal]:
    with app(home.model, env=home.env, fresh=fresh) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        terminal.until_silent()
        yield terminal


def test_few_bytes_are_sent_for_a_key_and_none_for_no_key(terminal: Terminal) -> None:
    assert median(terminal.cost("j") for _ in range(8)) <= 500
    assert "#8" in terminal.text and "/encoder/layer.1/Relu_output_0" in terminal.text
    terminal.cost("+")
    moves = [terminal.cost("j") for _ in range(12)]
    assert median(moves) <= 500
    assert "▌    20" in terminal.text
    terminal.cost("+")
    costs = [terminal.cost("pagedown"), terminal.cost("ctrl+d"), terminal.cost("G"), terminal.cost("pageup")]
    assert max(costs) <= 5_000
    assert "99," not in terminal.text and "999" in terminal.text
    assert terminal.is_idle(1.5)
    terminal.press("/", "s")
    terminal.wait_for("of 100,000")
    assert terminal.is_idle(1.5)


def test_the_app_stays_under_150_mb_and_loads_no_engine(fresh: Terminal) -> None:
    for keys in (("/", "softmax layer.1", "enter"), ("*",), ("escape",), ("G",), ("g",), ("n",)):
        fresh.cost(*keys)
    assert fresh.memory() < 150_000_000
    maps = {Path(entry.path).name for entry in psutil.Process(fresh.process.pid).memory_maps()}
    assert not [name for name in maps if "onnx" in name.lower() and name.endswith(".so")]


def test_filter_narrows_and_marks_are_counted_and_kept_over_a_restart(home: Home) -> None:
    with app(home.model, env=home.env) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        terminal.press("/", "op:softmax", "enter")
        terminal.wait_for("14,285 of 100,000")
        terminal.press("*")
        terminal.wait_for("14,285 marked, 11.5 GB an iteration")
        terminal.press("j", "j")
        terminal.wait_for(lambda text: "▌    20 Softmax" in text)
        terminal.press("q")
        assert terminal.exit_code() == 0
    with app(home.model, env=home.env) as terminal:
        terminal.wait_for("14,285 of 100,000")
        terminal.wait_for(lambda text: "▌    20 Softmax" in text)
        terminal.wait_for("14,285 marked")


def test_goto_producer_consumer_and_back(terminal: Terminal) -> None:
    for keys, seen in (
        ((":", "goto /encoder/layer.14000/Sub", "enter"), "Sub #98004"), (("p",), "Sigmoid #98003"),
        (("[",), "Sub #98004"), (("c",), "Tanh #98005"), (("[",), "Sub #98004"), (("]",), "Tanh #98005"),
    ):  # fmt: skip
        terminal.press(*keys)
        terminal.wait_for(f"▸ {seen} ◂")


def test_one_pane_at_80x24_and_tab_shows_the_other(home: Home) -> None:
    with app(home.model, env=home.env, columns=80, rows=24) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        terminal.until_silent()
        assert "▸" not in terminal.text
        terminal.press("tab")
        terminal.wait_for("▸ Add #0 ◂")
        terminal.press("tab")
        terminal.wait_for("/encoder/layer.1/Relu")
        terminal.resize(120, 40)
        terminal.wait_for("▸ Add #0 ◂")


def test_three_panes_at_180_columns_and_tab_goes_round_them(home: Home) -> None:
    with app(home.model, env=home.env, columns=180, rows=50) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        terminal.wait_for(lambda text: text.splitlines()[3].count("│") == 2)
        terminal.wait_for(lambda text: "Add #0" in text.splitlines()[3].split("│")[1] and "▸ Add #0 ◂" in text)
        terminal.until_silent()
        assert "▸ Add #0 ◂" in "".join(line.split("│")[-1] for line in terminal.text.splitlines())
        assert terminal.text.count("▸ Add #0 ◂") == 1
        assert "errors show here once a comparison has run" in terminal.text
        moves = [terminal.cost("j") for _ in range(8)]
        assert median(moves) <= 1_000
        terminal.press("tab", "tab", "tab", "j")
        terminal.wait_for("#9 ◂")
        terminal.cost("+")
        assert "◂" not in terminal.text
        assert median(terminal.cost("j") for _ in range(7)) <= 500
        terminal.resize(120, 40)
        terminal.cost("+")
        terminal.wait_for(lambda text: text.splitlines()[3].count("│") == 1 and "#16 ◂" in text)


def test_keys_typed_ahead_go_where_they_belong(terminal: Terminal) -> None:
    terminal.press(":goto 70", "enter", "j", "/op:tanh", "enter", "y", "t")
    terminal.wait_for("copied")
    terminal.wait_for(lambda text: "▸ Tanh #75 ◂" in text and "▌    75" in text)


def test_help_lists_the_keys_of_the_screen_and_runs_them(terminal: Terminal) -> None:
    terminal.press("?")
    terminal.wait_for("jump to a producer")
    terminal.press("last row")
    terminal.wait_for(lambda text: "jump to a producer" not in text)
    terminal.press("enter")
    terminal.wait_for("#99999")


def test_yank_goes_to_the_terminal_and_to_a_file(terminal: Terminal, home: Home) -> None:
    terminal.press("y")
    terminal.wait_for("command line")
    terminal.press("t")
    terminal.wait_for("copied 29 bytes")
    assert (home.root / "yank.txt").read_text() == "/encoder/layer.0/Add_output_0"
    assert b"\x1b]52;c;" in terminal.raw


def test_the_first_opening_indexes_in_a_job(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "small.onnx", 70)
    env = {"LAYERWISE_HOME": str(tmp_path / "home")}
    with app(model, env=env) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
    assert (tmp_path / "home" / "jobs" / "1" / "events.jsonl").exists()
    with app(model, env=env) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
    assert not (tmp_path / "home" / "jobs" / "2").exists()


def test_a_broken_model_is_named_and_the_app_goes_on(tmp_path: Path) -> None:
    model = tmp_path / "broken.onnx"
    model.write_bytes(b"\x08\x07\xff\xff\xff")
    with app(model, env={"LAYERWISE_HOME": str(tmp_path / "home")}) as terminal:
        terminal.wait_for("broken.onnx:")
        assert "Traceback" not in terminal.text
        terminal.press("3")
        terminal.wait_for("[3 Jobs]")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "screen", "COLORTERM": ""}, {"COLORTERM": ""}])
def test_fewer_colours_leave_text_and_background_apart(home: Home, env: dict[str, str]) -> None:
    with app(home.model, env={**home.env, **env}) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        terminal.until_silent()
        cells = [cell for line in terminal.screen.buffer.values() for cell in line.values() if cell.data.strip()]
        assert cells and not [cell for cell in cells if cell.fg == cell.bg != "default"]


def test_ascii_draws_without_unicode(home: Home) -> None:
    with app(home.model, env={**home.env, "LC_ALL": "C"}) as terminal:
        terminal.wait_for("> Add #0 <")
        terminal.until_silent()
        assert terminal.text.isascii()
