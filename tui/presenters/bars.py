"""Title bar, tab bar, footer and help as text."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.numbers import size_text
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, spread

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.commands import Command

TABS = (
    ("1", "graph", "Graph"),
    ("2", "errors", "Errors"),
    ("3", "jobs", "Jobs"),
    ("4", "debug", "Debug"),
    ("5", "surgery", "Surgery"),
    ("6", "perf", "Perf"),
    ("R", "run", "Run"),
    ("0", "home", "Home"),
)
_OFFERS = 8
_OF_SURGERY = ("history", "changes")
_SCOPES = {"global": "everywhere", "list": "lists"}


def title_line(model: Path | None, index: "GraphIndex | None", status: Line, cells: int, edited: str = "") -> Line:
    """Model, nodes, size, opset and how it is edited on the left; what the jobs do on the right."""
    left: Line = [(f" {shown(model.name, 40) if model else 'layerwise'}", "title")]
    if index is not None:
        left.append((f"  {index.n_nodes:,} nodes  {size_text(int(index.meta.get('size', 0)))}", "tab"))
        opset = index.meta.get("opsets", {}).get("")
        left.append((f"  opset {opset}" if opset else "", "tab"))
        left.append((f"  {edited}" if edited else "", "title"))
    return spread(left, [*status, (" ", "tab")], cells)


def tab_line(current: str) -> Line:
    """The screens with the key of each; the current one is also in brackets."""
    line: Line = []
    current = "surgery" if current in _OF_SURGERY else current
    for key, name, title in TABS:
        word = f"{':run' if name == 'run' and current == 'surgery' else key} {title}"
        line.append((f"[{word}]", "tab-on") if name == current else (f" {word} ", "tab"))
    return line


def footer_line(commands: "Sequence[Command]", cells: int) -> Line:
    """`key word` for as many commands as fit; help, the way to all others, is always among them."""
    help_cells = sum(_footer_cells(found) for found in commands if found.verb == "help")
    line: Line = []
    room = cells - help_cells
    for found in commands:
        is_help = found.verb == "help"
        if not is_help:
            room -= _footer_cells(found)
        if is_help or room >= 0:
            line += [(f" {_first_key(found)}", "bar-key"), (f" {found.footer} ", "tab")]
    return line


def _first_key(found: "Command") -> str:
    return found.key_text.split(" ")[0]


def _footer_cells(found: "Command") -> int:
    return len(_first_key(found)) + len(found.footer) + 3


def offers_line(offers: "Sequence[str]") -> Line:
    """Candidates for the end of a line: the last part of each, as many as may be looked at."""
    names = (offer.rstrip("/").rpartition("/")[2] + "/" * offer.endswith("/") for offer in offers[:_OFFERS])
    told = "  ".join(name if "/" in offer else _last_word(offer) for name, offer in zip(names, offers, strict=False))
    return [(shown(told, 300), "dim"), (f"  {len(offers) - _OFFERS} more" if len(offers) > _OFFERS else "", "dim")]


def _last_word(offer: str) -> str:
    verb, space, argument = offer.partition(" ")
    return argument if space and argument else verb


def usage_line(found: "Command | None") -> Line:
    """What a command that was typed does."""
    return [] if found is None else [(f"{found.line}: {shown(found.title, 200)}", "dim")]


def command_rows(commands: "Sequence[Command]", glyphs: Glyphs) -> list[Line]:
    """`keys  title  :line  scope`, in columns; a title that is too long ends in an ellipsis."""
    return [
        [
            (f"{found.key_text:<16.16} ", "key"),
            (f"{fit(found.title, 50, glyphs.ellipsis, keep='start')} ", ""),
            (f"{':' + found.line if found.line else '':<16.16} ", "accent"),
            (_SCOPES.get(found.scope, found.scope), "dim"),
        ]
        for found in commands
    ]
