"""The app on a terminal, in Surgery: opening it, looking at a change, making it."""

from pathlib import Path

import onnx
from support.terminal import Terminal, app

SIZES = [(80, 24), (120, 40)]
FIRST = "/embeddings/word/Gather"


def opened(model: Path, columns: int = 120, rows: int = 40, **more: object) -> Terminal:
    """The app on `model`, in Surgery, with its structure read."""
    terminal = app(model, columns=columns, rows=rows, **more)
    terminal.wait_for(FIRST if "encoder" in model.name else "/Relu")
    terminal.press("x")
    terminal.wait_for("as the file", 60)
    terminal.until_silent()
    return terminal


def change(terminal: Terminal, *keys: str, seen: str = "enter applies") -> None:
    """Press keys that lead to a change on view, and wait until the worker has looked at it."""
    terminal.press(*keys)
    terminal.wait_for(lambda text: seen in text and "enter applies" in text, 80)
    terminal.wait_for(lambda text: "are looking at it" not in text and "inferred" not in text, 80)


def apply(terminal: Terminal, edits: int) -> None:
    terminal.press("enter")
    terminal.wait_for(lambda text: f" {edits} edit" in text and "enter applies" not in text)


def at_rest(terminal: Terminal, text: str) -> None:
    """Wait until no change is on view and the screen says `text`."""
    terminal.wait_for(lambda screen: text in screen and "enter applies" not in screen)


def nodes(path: Path) -> list[tuple[str, str]]:
    return [(node.op_type, node.name) for node in onnx.load(path, load_external_data=False).graph.node]
