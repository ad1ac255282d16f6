"""A terminal, a pipe or a disk that takes no more text ends the telling, not the job: in every command that waits."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from support import forkserver
from support.cli import layerwise
from support.debugging import saved
from support.jobs import leases_taken, processes_of, until
from support.models import mlp
from support.terminal import Terminal

from layerwise._tool.backends.jobs.workspace.store import Workspace

_SIDES = ("bad.onnx", "--reference-model", "good.onnx", "--onnxrt", "--data-loader-script", "load.py")
_LOADER = """
import os, numpy
def load_data():
    if not os.path.exists({released!r}):
        open({gate!r}).read()
    yield {{"x": numpy.ones((1, 16), numpy.float32)}}
"""
_COMMANDS = {
    "run": (1, ["run", *_SIDES]),
    "passes": (0, ["run", "good.onnx", "--onnxrt", "--onnxrt", *_SIDES[-2:]]),
    "mark-all": (1, ["run", *_SIDES, "--mark-all", "-vv"]),
    "json": (1, ["run", *_SIDES, "--mark-all", "--json"]),
    "locate": (0, ["debug", "locate", *_SIDES]),
    "reduce": (0, ["debug", "reduce", *_SIDES, "-o", "small.onnx"]),
    "triage": (0, ["triage", *_SIDES, "-o", "triage"]),
    "convert": (0, ["convert", "good.onnx", "--int8", *_SIDES[-2:], "-o", "int8.onnx"]),
    "attach": (1, ["attach", "1"]),
}
_TERMINAL_WAYS = ("hangup", "nohup", "signal", "stopped")
_OTHER_WAYS = ("reader", "full")


class Gate:
    """Holds the job's data loader until `release`."""

    def __init__(self, folder: Path) -> None:
        self.path, self.released = folder / "gate", folder / "released"
        os.mkfifo(self.path)
        (folder / "load.py").write_text(_LOADER.format(gate=str(self.path), released=str(self.released)))
        self._held = -1

    def reached(self) -> bool:
        """Whether the loader waits; from now on it does until `release`."""
        with suppress(OSError):
            self._held = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        return self._held >= 0

    def release(self) -> None:
        self.released.touch()
        os.close(self._held)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    saved(tmp_path, mlp(), "/fc0/MatMul")
    yield Gate(tmp_path)


def started(name: str, gate: Gate, start: Callable[[list[str]], object]) -> object:
    """The command, once its job waits at the gate."""
    words = _COMMANDS[name][1]
    if name == "attach":
        assert layerwise("run", *_SIDES, "--detach", cwd=gate.path.parent).returncode == 0
        until(gate.reached)
        return start(words)
    program = start(words)
    until(gate.reached)
    return program


def check(name: str, gate: Gate) -> None:
    """The job is done with its verdict, and `attach` shows it."""
    home = Workspace()
    view = until(lambda: (found := home.view(1)).final and found)
    expected = _COMMANDS[name][0]
    assert view.state == "done", (view.state, view.card)
    assert (view.result or {}).get("passed", True) is (expected == 0)
    again = layerwise("attach", "1", cwd=gate.path.parent)
    assert again.returncode == expected and "Job 1: done" in again.stdout
    until(lambda: not processes_of(home) and not leases_taken(home))


_ALL_WAYS = ("run", "json", "locate", "attach")
_GONE = [
    *product(("run", "attach"), _TERMINAL_WAYS),
    *product(("json", "locate"), ("hangup", "stopped")),
    *product(_COMMANDS.keys() - _ALL_WAYS, ("hangup",)),
]
_CLOSED = [
    *product(_ALL_WAYS, _OTHER_WAYS),
    *((name, _OTHER_WAYS[number % 2]) for number, name in enumerate(sorted(_COMMANDS.keys() - _ALL_WAYS))),
]


@pytest.mark.parametrize(("name", "way"), sorted(_GONE))
def test_a_terminal_that_is_gone_or_stopped(name: str, way: str, gate: Gate) -> None:
    terminal: Terminal = started(
        name, gate, lambda words: Terminal(words, forked=True, hangup=way != "nohup", cwd=gate.path.parent)
    )  # type: ignore[assignment]
    with terminal:
        if name == "attach":  # it begins once the job is there: let it have its terminal
            until(lambda: terminal.received or terminal.pump(0.05))
        if way == "stopped":
            os.write(terminal.master, b"\x13")
        else:
            if way == "signal":
                terminal.process.send_signal(signal.SIGHUP)
            terminal.hang_up()
        gate.release()
        check(name, gate)
        if way == "stopped":
            os.write(terminal.master, b"\x11")
        code = terminal.exit_code()
    assert code == _COMMANDS[name][0] or (name == "attach" and code == -signal.SIGHUP)


@pytest.mark.parametrize("name", ["mark-all", "locate"])
def test_a_connection_that_drops_under_a_shell(name: str, gate: Gate) -> None:
    def start(words: list[str]) -> Terminal:
        terminal = Terminal(["bash", "--norc", "-i"], cwd=gate.path.parent)
        terminal.press(shlex.join([sys.executable, "-m", "layerwise", *words]), "enter")
        return terminal

    terminal: Terminal = started(name, gate, start)  # type: ignore[assignment]
    with terminal:
        terminal.hang_up()
        gate.release()
        check(name, gate)


@pytest.mark.parametrize(("name", "way"), _CLOSED)
def test_a_reader_that_left_and_a_disk_that_is_full(name: str, way: str, gate: Gate) -> None:
    read, write = os.pipe()
    output = write if way == "reader" else os.open("/dev/full", os.O_WRONLY)
    errors = (gate.path.parent / "stderr.txt").open("wb+")

    def start(words: list[str]) -> forkserver.Forked:
        with Path(os.devnull).open() as nothing:
            return forkserver.start(words, gate.path.parent, os.environ, [nothing.fileno(), output, errors.fileno()])

    program: forkserver.Forked = started(name, gate, start)  # type: ignore[assignment]
    os.close(write)
    os.close(read)
    gate.release()
    check(name, gate)
    code = program.wait(20)
    errors.seek(0)
    said = errors.read().decode()
    assert "Traceback" not in said
    assert code == (_COMMANDS[name][0] if way == "reader" else 1)
    assert ("standard output cannot be written: No space left on device" in said) == (way == "full")
