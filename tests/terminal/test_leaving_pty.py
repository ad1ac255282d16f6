"""Leaving: by key, by signal, by a terminal that is gone; and where the app refuses to start."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.big_graph import chain_model
from support.jobs import alive, pids_of, processes_of, until, waiting_pair
from support.terminal import APP, ROOT, Terminal, app

from layerwise._tool.backends.jobs.workspace.store import Workspace


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return chain_model(tmp_path / "small.onnx", 70)


def opened(model: Path, *, hangup: bool = True, fresh: bool = False) -> Terminal:
    """The app. fresh: in a Python of its own, whose end is the interpreter's own too."""
    terminal = app(model, env={"LAYERWISE_HOME": str(model.parent / "home")}, hangup=hangup, fresh=fresh, own_jobs=True)
    terminal.wait_for("/encoder/layer.0/Relu")
    return terminal


def saved(model: Path) -> dict[str, object]:
    """The one session of the workspace."""
    files = [path for path in (model.parent / "home" / "sessions").iterdir() if path.name != "last.json"]
    content: dict[str, object] = json.loads(files[0].read_text())
    return content


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_session_and_ends_the_app(model: Path, number: signal.Signals) -> None:
    with opened(model, fresh=number == signal.SIGTERM) as terminal:
        terminal.press("j", "space")
        terminal.wait_for("1 marked")
        terminal.process.send_signal(number)
        terminal.exit_code()
    assert saved(model)["marks"] == ["/encoder/layer.0/Relu_output_0"]


@pytest.mark.parametrize("hangup", [True, False])
def test_without_its_terminal_the_app_ends(model: Path, hangup: bool) -> None:
    with opened(model, hangup=hangup) as terminal:
        terminal.press("j", "space")
        terminal.wait_for("1 marked")
        terminal.hang_up()
        terminal.exit_code()
    assert saved(model)["marks"] == ["/encoder/layer.0/Relu_output_0"]


@pytest.mark.parametrize("end", ["q", "SIGTERM", "SIGKILL", "hangup"])
def test_the_processes_that_wait_for_a_job_leave_with_the_app(model: Path, end: str) -> None:
    home = Workspace(model.parent / "home")
    with opened(model, fresh=end in ("q", "SIGKILL")) as terminal:
        pair = terminal.meanwhile(lambda: waiting_pair(home))
        assert terminal.is_idle(1.0)
        if end == "q":
            terminal.press("q")
        elif end == "hangup":
            terminal.hang_up()
        else:
            terminal.process.send_signal(signal.Signals[end])
        terminal.exit_code()
        until(lambda: not any(map(alive, pair)))
    until(lambda: not processes_of(home))


def test_a_job_of_the_app_is_done_by_the_processes_that_waited(model: Path) -> None:
    home = Workspace(model.parent / "home")
    with opened(model, fresh=True) as terminal:
        pair = terminal.meanwhile(lambda: waiting_pair(home))
        terminal.press("w")
        terminal.wait_for("this node reads no weights")
        terminal.press("R")
        terminal.wait_for("layerwise: every tensor")
        warm = terminal.meanwhile(lambda: max(home.ids()) if len(home.ids()) > 1 else 0)  # says what the inputs get
        assert pids_of(home, warm) == pair
        pair = terminal.meanwhile(lambda: (found := waiting_pair(home)) and found != pair and found)
        terminal.press("r")
        job = terminal.meanwhile(lambda: max(home.ids()) if max(home.ids()) > warm else 0)
        assert pids_of(home, job) == pair
        terminal.meanwhile(lambda: (found := waiting_pair(home)) and found != pair)
        assert terminal.meanwhile(lambda: home.view(job).final)


def test_leaving_gives_the_terminal_back(model: Path) -> None:
    with opened(model, fresh=True) as terminal:
        terminal.press("q")
        assert terminal.exit_code() == 0
        assert b"\x1b[?1049l" in terminal.raw and b"\x1b[?25h" in terminal.raw


def test_without_a_model_enter_opens_the_last_one_as_it_was(model: Path) -> None:
    with opened(model) as terminal:
        terminal.press("j", "space")
        terminal.wait_for("1 marked")
        terminal.press("q")
        terminal.exit_code()
    with app(env={"LAYERWISE_HOME": str(model.parent / "home")}) as terminal:
        terminal.wait_for("small.onnx  7.83 kB  70 nodes")
        terminal.press("enter")
        terminal.wait_for("1 marked")
        assert "[1 Graph]" in terminal.text and "small.onnx" in terminal.text


def test_over_ssh_the_mouse_is_left_to_the_terminal(model: Path) -> None:
    with app(model, env={"LAYERWISE_HOME": str(model.parent / "home"), "SSH_CONNECTION": "1 2 3 4"}) as terminal:
        terminal.wait_for("/encoder/layer.0/Relu")
        assert b"\x1b[?1003h" not in terminal.raw


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_draw_is_refused_with_a_hint(model: Path, term: str) -> None:
    with app(model, env={"TERM": term}) as terminal:
        assert terminal.exit_code() == 2
        assert "layerwise run" in terminal.text and b"\x1b[" not in terminal.raw


def test_without_a_terminal_the_app_refuses_with_a_hint(model: Path) -> None:
    done = subprocess.run([*APP, str(model)], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "layerwise run" in done.stderr


def test_the_worker_of_the_open_model_leaves_with_an_app_that_was_killed(model: Path) -> None:
    home = Workspace(model.parent / "home")
    with opened(model) as terminal:
        terminal.press("x")
        terminal.wait_for("as the file", 60)
        terminal.meanwhile(
            lambda: any(view.spec.action == "interactive" and view.state == "running" for view in home.list_jobs()),
        )
    until(lambda: all(view.final for view in home.list_jobs()))
