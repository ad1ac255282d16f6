"""Finding the culprit in the real program on a terminal: locate, reduce, bisect by hand over a disconnect, bundle."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import BAD_LAYER, chain_pair, compare_spec
from support.forked_jobs import forked_jobs
from support.jobs import wait_for
from support.terminal import Terminal, app

from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.tui.controllers.run import compare_job

LAYERS = 100
CULPRIT = f"#{2 * BAD_LAYER} MatMul /layer.{BAD_LAYER}/MatMul"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"), LAYERS)


@pytest.fixture
def compared(pair: tuple[Path, Path]) -> Path:
    """The wrong model, compared with the right one in this test's workspace."""
    home = Workspace()
    with forked_jobs():
        job = asyncio.run(JobClient(home, ACTIONS).submit(compare_job(compare_spec(pair[1], pair[0]))))
    wait_for(home, job, "done", seconds=60)
    return pair[1]


def question(terminal: Terminal) -> int:
    """The number of the question on the screen, 0 if none waits."""
    found = re.search(r"question (\d+).*waiting for you since", terminal.text)
    return int(found[1]) if found else 0


def answer(terminal: Terminal, right: bool = True) -> None:
    """Answer as the machine suggests, or the other way, and wait for what comes of it."""
    terminal.wait_for(lambda text: "suggests" in text and question(terminal) > 0)
    number = question(terminal)
    suggested = re.search(r"suggests\s+(good|bad)", terminal.text)
    assert suggested is not None, terminal.text
    terminal.press({"good": "g", "bad": "b"}[suggested[1]] if right else {"good": "b", "bad": "g"}[suggested[1]])
    terminal.wait_for(lambda text: ("suggests" in text and question(terminal) == number + 1) or "done in" in text)


def test_from_the_table_to_the_culprit(compared: Path) -> None:
    with app(compared) as terminal:
        terminal.wait_for(f"{2 * LAYERS} nodes")
        terminal.press("2")
        terminal.wait_for(f"done: {2 * LAYERS} rows")
        terminal.press("L")
        terminal.wait_for("local errors of job", 40)
        terminal.press("f")
        terminal.wait_for(lambda text: re.search(rf"▌ ✗ +{2 * BAD_LAYER} MatMul.*kernel", text) is not None)
        terminal.press("4")
        terminal.wait_for("is wrong by itself")
        terminal.wait_for(f"weight w{BAD_LAYER} is not the reference's")
        terminal.press("2")
        terminal.wait_for("[2 Errors]")
        terminal.press("d")
        terminal.wait_for(lambda text: "[4 Debug]" in text and f"found     {CULPRIT}" in text, 40)
        terminal.press("\x0f")
        terminal.wait_for("reduced.onnx  1 node ")
        terminal.press(":back")
        terminal.press("enter")
        terminal.wait_for(f"found     {CULPRIT}")


def test_by_hand_over_a_disconnect_to_a_bundle_that_fails_alone(compared: Path, tmp_path: Path) -> None:
    home = Workspace()
    with app(compared, columns=80, rows=24) as terminal:
        terminal.wait_for(f"{2 * LAYERS} nodes")
        terminal.press("4")
        terminal.wait_for("No search yet. On: onnxruntime cpu against")
        terminal.press("I")
        terminal.wait_for("suggests", 40)
        answer(terminal)
        answer(terminal, right=False)
        terminal.press("u")
        terminal.wait_for(lambda text: "undone" in text and question(terminal) == 2 and "suggests" in text)
        before = terminal.text.splitlines()[3:14]
        terminal.meanwhile(lambda: any('"debug_job"' in path.read_text() for path in home.root.glob("sessions/*.json")))
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.exit_code()
    with app(compared, columns=80, rows=24) as terminal:
        terminal.wait_for("[4 Debug]")
        terminal.wait_for(lambda text: "suggests" in text and question(terminal) == 2)
        assert terminal.text.splitlines()[3:14] == before
        while "done in" not in terminal.text:
            answer(terminal)
        terminal.wait_for(f"found     {CULPRIT}")
        terminal.press(f":bundle {tmp_path}/bug")
        terminal.press("enter")
        terminal.wait_for("bundle written", 40)
    command = [sys.executable, "-I", "repro.py"]
    done = subprocess.run(
        command, cwd=tmp_path / "bug", env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "1 of 1 outputs are wrong" in done.stdout) == (1, True), done.stdout + done.stderr


def test_bytes_of_the_debug_screen(compared: Path) -> None:
    with app(compared, columns=120, rows=40) as terminal:
        terminal.wait_for(f"{2 * LAYERS} nodes")
        terminal.press("4")
        terminal.wait_for("No search yet. On: onnxruntime cpu against")
        terminal.press("b")
        terminal.wait_for(f"found     {CULPRIT}", 40)
        terminal.until_silent(1.0)
        moves = sorted(terminal.cost("j") for _ in range(7))
        assert moves[3] <= 500, moves
        assert terminal.is_idle(1.0)
        terminal.press("I")
        terminal.wait_for("suggests", 40)
        assert terminal.is_idle(1.0)
        terminal.press("K")
        terminal.wait_for("Cancel job")
        terminal.press("y")
        terminal.wait_for("goes on where it stopped")
