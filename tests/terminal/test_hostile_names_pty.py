"""Names that try to steer the terminal or the toolkit do nothing, on any screen."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.big_graph import HOSTILE, hostile_model
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


def test_yanking_a_hostile_command_line_copies_no_control_character(terminal: Terminal) -> None:
    terminal.cost("space")
    terminal.cost("y")
    terminal.press("c")
    terminal.wait_for("copied")
    copied = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)", bytes(terminal.raw))
    assert copied is not None
    text = base64.b64decode(copied.group(1)).decode()
    assert text.isprintable() and "$'" in text
