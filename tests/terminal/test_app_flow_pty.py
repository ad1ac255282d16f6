"""The real program in a terminal: run, watch the table fill, jump to the first bad layer, survive a kill."""

import os
import re
import signal
from pathlib import Path

import pytest
from support.bench import BAD_LAYER, chain_pair
from support.jobs import TESTS, processes_of, until
from support.slowcompare import EXTRA_ACTIONS
from support.terminal import Terminal, app

from layerwise._tool.backends.jobs.workspace.store import Workspace

LAYERS = 100


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"), LAYERS)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYERWISE_EXTRA_ACTIONS", EXTRA_ACTIONS)
    monkeypatch.setenv("LAYERWISE_TEST_PAUSE", "0.03")
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}{os.pathsep}{TESTS}")


def done(terminal: Terminal) -> int:
    """Tensors compared, as the head of the table says."""
    found = re.search(r"(\d+) of \d+ tensors|done: (\d+) rows", terminal.text)
    return int(found[1] or found[2]) if found else 0


def start_comparison(terminal: Terminal, model: Path, other: Path) -> None:
    terminal.wait_for(f"{2 * LAYERS} nodes")
    terminal.press("R")
    terminal.wait_for("layerwise: every tensor")
    terminal.press("j" * 8)
    terminal.press("enter")
    terminal.wait_for("model:")
    terminal.press(str(other))
    terminal.wait_for(other.name)
    terminal.until_silent()
    terminal.press("enter")
    terminal.until_silent()
    terminal.press("r")
    terminal.wait_for("[2 Errors]")


def test_run_watch_jump_and_go_to_the_node(pair: tuple[Path, Path], slow: None) -> None:
    right, wrong = pair
    with app(wrong) as terminal:
        start_comparison(terminal, wrong, right)
        terminal.wait_for(lambda text: done(terminal) > 20)
        before = done(terminal)
        terminal.wait_for(lambda text: "1 job" in text or "done:" in text)
        terminal.wait_for(lambda text: done(terminal) > before)
        terminal.wait_for(f"done: {2 * LAYERS} rows", 40)
        terminal.press("f")
        terminal.wait_for(f"node /layer.{BAD_LAYER}/MatMul")
        assert terminal.is_idle(1.0)
        terminal.press("o")
        terminal.wait_for("[1 Graph]")
        terminal.wait_for(lambda text: re.search(rf"▌ *{2 * BAD_LAYER} MatMul", text) is not None)
        terminal.press("q")
        until(lambda: terminal.pump(0.05) == 0 and terminal.process.poll() is not None)
        assert terminal.process.returncode == 0


def test_the_table_goes_on_after_the_app_was_killed(pair: tuple[Path, Path], slow: None) -> None:
    right, wrong = pair
    home = Workspace()
    with app(wrong, columns=80, rows=24, own_jobs=True) as terminal:
        start_comparison(terminal, wrong, right)
        terminal.wait_for(lambda text: done(terminal) > 20)
        terminal.meanwhile(lambda: any("compare_job" in path.read_text() for path in home.root.glob("sessions/*.json")))
        os.kill(terminal.process.pid, signal.SIGKILL)
        killed_at = done(terminal)
    with app(wrong, columns=80, rows=24, own_jobs=True) as terminal:
        terminal.wait_for("[2 Errors]")
        terminal.wait_for(lambda text: done(terminal) > killed_at)
        terminal.wait_for(f"done: {2 * LAYERS} rows", 40)
        terminal.press("3")
        terminal.wait_for("✓ done")
        assert terminal.is_idle(1.0)
    until(lambda: not processes_of(home))


def test_bytes_of_the_error_table(pair: tuple[Path, Path]) -> None:
    right, wrong = pair
    with app(wrong, columns=120, rows=40) as terminal:
        start_comparison(terminal, wrong, right)
        terminal.wait_for(f"done: {2 * LAYERS} rows", 40)
        terminal.until_silent()
        moves = sorted(terminal.cost("j") for _ in range(7))
        assert moves[3] <= 500, moves
        assert terminal.cost("pagedown") <= 20_000
        assert terminal.is_idle()
        assert terminal.cost("/") <= 1000
        assert terminal.is_idle(1.0)
        terminal.cost("escape")
        terminal.press("3")
        terminal.wait_for("[3 Jobs]")
        terminal.wait_for("wrong.onnx: onnxruntime")
        assert terminal.is_idle(1.0)
    with app(wrong, columns=80, rows=24) as terminal:
        terminal.wait_for("[3 Jobs]")
        terminal.press("2")
        terminal.wait_for(f"done: {2 * LAYERS} rows")
        terminal.until_silent()
        moves = sorted(terminal.cost("j") for _ in range(7))
        assert moves[3] <= 500, moves
