"""Starting the app: what must be settled before Textual is imported, and leaving in good order.

Textual reads its TEXTUAL_* variables at import, so nothing here imports it before `prepare_environment`.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import absolute_path
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from textual.events import Event

_HINT = "use the headless commands instead: layerwise run MODEL …, layerwise inspect model MODEL, layerwise jobs"


Demo = Callable[[], tuple[Path, int]]
"""Makes the demo: its model, and the job that compares it. Raises LayerwiseError."""


def run_app(
    model: str | Path | None = None, *, job: int | None = None, workspace: Path | None = None,
    mouse: bool | None = None, demo: Demo | None = None,
) -> int:  # fmt: skip
    """Open the app on `model` (None: on the Home screen, to choose one) and return the exit code.

    job: what to show at once. mouse: None is as the settings say, else on, except under SSH. demo: who makes the demo,
    None where it cannot be asked for. Raises UsageError where no terminal can show the app.
    """
    check_terminal()
    path = None if model is None else absolute_path(Path(model))
    if path is not None and not path.is_file():
        raise UsageError(f"{shown(str(path))}: {'a folder, not a model' if path.is_dir() else 'no such file'}")
    prepare_environment()
    from layerwise._tool.tui.workbench import open_workbench

    under_ssh = "SSH_CONNECTION" in os.environ or "SSH_TTY" in os.environ
    before: Path | None = None
    tour = False
    typed: list[Event] = []
    while True:
        bench = open_workbench(path, workspace, job, before, demo, tour)
        bench.keys.begin_with(typed)
        wanted = bench.state.settings.mouse if mouse is None else mouse
        bench.run(mouse=not under_ssh if wanted is None else wanted)
        if bench.next_model is None:
            return bench.return_code or 0
        typed = bench.keys.rest()
        path, job, before = bench.next_model, bench.next_job, bench.state.session.model
        tour = bench.switching.tour


def check_terminal() -> None:
    """Raise UsageError where standard input and output are not a terminal that can draw."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"the app needs a terminal; {_HINT}")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(f"TERM={os.environ.get('TERM', '')!r} cannot show the app; {_HINT}")


def prepare_environment() -> None:
    """Switch off what costs bytes or latency. The user's own settings win."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    os.environ.setdefault("TEXTUAL_FPS", "30")
    os.environ.setdefault("TEXTUAL_DISABLE_KITTY_KEY", "1")
    for exported in ("COLUMNS", "LINES"):  # they would outlive a resize; the terminal knows its size
        os.environ.pop(exported, None)
