"""Opening the Python line that a node comes from, in the user's editor, with the app suspended meanwhile."""

import subprocess

from textual.app import SuspendNotSupported

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import SourceLine
from layerwise._tool.tui.controllers.source import editor_command
from layerwise._tool.tui.presenters.source import link_role, source_text
from layerwise._tool.tui.presenters.text import wrap_runs
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.widgets.lines import LineWidget

TITLE = "open the Python line that it comes from in $EDITOR"


def offer(page: Page, line: SourceLine | None) -> None:
    """Show the line, and open it if the user then says so; where it cannot be opened it is a link, with the reason."""
    if line is None:
        page.state.say("no line of Python is known: the model's exporter noted none")
        return
    room = max(20, min(100, page.app.size.width - 16))
    lines = wrap_runs([(source_text(line), link_role(line.file))], room)
    try:
        words = editor_command(line)
    except UsageError as problem:
        page.choose(f"{problem} (esc closes)", [Choice(part, None) for part in lines])
        return
    title = f"enter opens it with {shown(shell_line(words[:-1]), 60)}, esc leaves it"
    page.choose(title, [Choice(part, words) for part in lines], lambda chosen: edit(page, chosen))


def edit(page: Page, words: list[str]) -> None:
    """Run an editor in the terminal, and draw the app again when it is done."""
    try:
        with page.app.suspend():
            code = subprocess.run(words, check=False).returncode
    except SuspendNotSupported:
        page.state.say("the app cannot leave this terminal to an editor", "bad")
        return
    except (OSError, ValueError) as error:
        page.state.say(f"{shown(words[0], 80)}: {getattr(error, 'strerror', None) or error}", "bad")
        return
    for widget in page.screen.query(LineWidget):
        widget.refresh_lines(0, widget.size.height)
    if code:
        page.state.say(f"{shown(words[0], 80)} ended with {code}", "warn")
