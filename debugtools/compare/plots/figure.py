"""Figures of matplotlib (the extra `plots`): no window, and no layout engine, which takes longer than the drawing."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import MissingDependency, placing
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.permissions import make_folder

_DPI = 150


def need_matplotlib() -> None:
    """MissingDependency if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingDependency("plots need matplotlib: pip install 'layerwise[plots]'")


def figure(title: str, width: float = 6.4) -> Any:
    """Return an empty figure, `width` x 4.8 inches; its upper eighth is for the title, of up to three lines."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, 4.8), dpi=_DPI)
    made.suptitle(title.replace("$", r"\$"), fontsize="x-small", y=0.99)  # matplotlib would read it as a formula
    return made


def save(made: Any, path: Path) -> None:
    """Write a figure as PNG; its title is the file's too."""
    with placing(path):
        make_folder(path.parent)
    with atomic_writer(path) as stream:
        made.savefig(stream, format=path.suffix[1:] or "png", metadata={"Title": made.get_suptitle()})
