"""Names that try to steer the terminal or the toolkit do nothing, on any screen."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.big_graph import HOSTILE, hostile_model
from support.hostile import Bash
from support.terminal import Terminal, app


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    model = hostile_model(tmp_path / "[red]evil\x1b[31m.onnx")
    with app(model, env={"LAYERWISE_HOME": str(tmp_path / "home")}) as terminal:
        terminal.wait_for(f"{len(HOSTILE)} nodes")
        terminal.until_silent()
        yield terminal


def assert_harmless(terminal: Terminal) -> None:
    """No sequence of the model's names reached the terminal, and the frame of the app stands."""
    raw = re.sub(rb"\x1b\]22;[a-z]*\x07", b"", bytes(terminal.raw))  # Textual's shape of the mouse pointer
    assert not re.search(rb"\x1b\]52|\x1b\[2J.{0,20}evil|\xc2\x9b|\x9b31m|\xe2\x80\xae|\x07", raw)
    lines = terminal.text.split("\n")
    assert lines[1].startswith("[1 Graph]") and "help" in lines[-1]


def test_every_node_shows_its_names_as_text(terminal: Terminal) -> None:
    seen = ""
    for _ in HOSTILE:
        terminal.cost("j")
        seen += terminal.text
        assert_harmless(terminal)
    for text in ("\\x1b[2J", "[bold red]", "two\\x0alines", "\\u202e", "\\x9b31m", "nnnn", "宽字符"):
        assert text in seen


def test_filter_goto_and_choosers_take_hostile_names(terminal: Terminal) -> None:
    for keys in (
        ("/", "[bold red]", "enter"), ("escape", "escape"), (":", "goto [bold", "enter"), ("tab",), ("tab",), ("y",),
        ("escape",), (":", "goto n", "tab", "enter"), ("space",), ("?",), ("escape",),
    ):  # fmt: skip
        terminal.cost(*keys)
    assert terminal.process.poll() is None
    assert_harmless(terminal)


@pytest.mark.parametrize("words", [("--onnx",), ("--gen-script", "-"), ("--mark-all",)])
def test_a_command_on_a_terminal_with_its_bar_obeys_no_name(tmp_path: Path, words: tuple[str, ...]) -> None:
    model = hostile_model(tmp_path / f"{HOSTILE[0]}{HOSTILE[2]}\u202e\x9b31m.onnx")
    env = {"LAYERWISE_HOME": str(tmp_path / "home")}
    with Terminal(["run", str(model), "--onnxrt", *words], forked=True, env=env) as terminal:
        while terminal.process.poll() is None or terminal.pump(0.05):
            terminal.pump(0.05)
        raw = bytes(terminal.raw)
    assert len(raw) > 200
    ours = rb"\x1b\[[0-9;]*[mKAG]|\x1b\[\?25[lh]|\x1b\[[0-9]*[AB]|\r"
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|\nlines", re.sub(ours, b"", raw))


def copied(terminal: Terminal) -> list[str]:
    """What the clipboard was given, in order."""
    return [base64.b64decode(text).decode() for text in re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", terminal.raw)]


def test_every_name_that_is_copied_is_one_word_of_one_line(terminal: Terminal, tmp_path: Path) -> None:
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    for i in range(len(names)):
        terminal.press(":goto ", str(i), "enter", "y")
        terminal.wait_for("tensor name")
        terminal.press("t")
        terminal.wait_for(lambda text, i=i: len(copied(terminal)) > i)
    lines = copied(terminal)
    ran = Bash(tmp_path / "bash", "layerwise").run([f"layerwise {line}" for line in lines], interactive=True)
    assert [name for _, *words in ran for name in words] == names
    terminal.press(":goto ", lines[2], "enter")  # as it is pasted
    terminal.wait_for("#2 ")


def test_yanking_a_hostile_command_line_copies_no_control_character(terminal: Terminal) -> None:
    terminal.cost("space")
    terminal.cost("y")
    terminal.press("c")
    terminal.wait_for("copied")
    copied = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)", bytes(terminal.raw))
    assert copied is not None
    text = base64.b64decode(copied.group(1)).decode()
    assert text.isprintable() and "$'" in text
