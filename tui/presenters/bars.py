"""Title bar, tab bar, footer and help as text."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, shown, shown_name
from layerwise._tool.tui.presenters.text import Line, fit, plain, spread, width, wrap_runs

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
    ("7", "matrix", "Matrix"),
    ("R", "run", "Run"),
    ("0", "home", "Home"),
)
_OFFERS = 8
_OF_SURGERY = ("history", "changes")
_SCOPES = {"global": "everywhere", "list": "lists", "pane": "texts"}
_KEYS, _NAME, _TITLE, _SCOPE, _WIDE = 9, 20, 20, 11, 96
_LEAST = 8


def title_line(model: Path | None, index: "GraphIndex | None", status: Line, cells: int, edited: str = "") -> Line:
    """Model, nodes, size, opset and how it is edited on the left; what the jobs do on the right.

    Where there is no room, facts go as a whole, the opset first, and the model's name is shortened.
    """
    name, facts = shown_name(model.name, 40) if model else "layerwise", []
    if index is not None:
        opset = index.meta.get("opsets", {}).get("")
        facts = [counted(index.n_nodes, "node"), size_text(int(index.meta.get("size", 0)))]
        facts += [f"opset {opset}"] if opset else []
    end = f"  {edited}" if edited and index is not None else ""
    room = cells - width(status) - 3
    end = end if room - cell_len(end) >= _LEAST else ""
    room -= cell_len(end)
    while facts and cell_len(name) + sum(len(fact) + 2 for fact in facts) > room:
        facts.pop()
    name = fit(name, max(_LEAST, min(cell_len(name), room))).rstrip()
    left: Line = [(f" {name}", "title"), ("".join(f"  {fact}" for fact in facts), "tab"), (end, "title")]
    return spread(left, [*status, (" ", "tab")], cells)


def tab_line(current: str, cells: int) -> Line:
    """The screens with the key of each, keys alone where there is no room; the current one is also in brackets."""
    current = "surgery" if current in _OF_SURGERY else current
    words = [(f"{key} {title}" if name == current else key, name == current) for key, name, title in TABS]
    whole = [(f"{key} {title}", name == current) for key, name, title in TABS]
    if sum(len(word) + 2 for word, _ in whole) <= cells:
        words = whole
    return [(f"[{word}]", "tab-on") if on else (f" {word} ", "tab") for word, on in words]


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


FEW = 2


def offers_lines(begun: str, offers: "Sequence[tuple[str, Command]]", cells: int) -> tuple[str, Line]:
    """What may follow the keys `begun` of a command of several, on two lines: `e then   d delete`, and the rest."""
    few = len(offers) <= FEW
    words = [(key, found.title if few or not found.footer else found.footer) for key, found in offers]
    first, used = begun if few else f"{begun} then", 0
    for key, word in words:
        if len(first) + len(key) + len(word) + 4 > cells:
            break
        first, used = f"{first}   {key} {word}", used + 1
    rest: Line = [run for key, word in words[used:] for run in ((f" {key}", "bar-key"), (f" {word} ", "tab"))]
    return first, [*rest, (" esc", "bar-key"), (" leaves it ", "tab")]


def _first_key(found: "Command") -> str:
    return found.key_text.split(" ")[0]


def _footer_cells(found: "Command") -> int:
    return len(_first_key(found)) + len(found.footer) + 3


def candidates_line(offers: "Sequence[str]") -> Line:
    """Candidates for the end of a line: the last part of each, as many as may be looked at."""
    names = (offer.rstrip("/").rpartition("/")[2] + "/" * offer.endswith("/") for offer in offers[:_OFFERS])
    told = "  ".join(name if "/" in offer else _last_word(offer) for name, offer in zip(names, offers, strict=False))
    return [(shown(told, 300), "dim"), (f"  {len(offers) - _OFFERS} more" if len(offers) > _OFFERS else "", "dim")]


def _last_word(offer: str) -> str:
    verb, space, argument = offer.partition(" ")
    return argument if space and argument else verb


def usage_line(found: "Command") -> Line:
    """What a command that was typed does."""
    return [(f"{found.usage}: {shown(found.title, 200)}", "dim")]


def command_rows(commands: "Sequence[Command]", cells: int) -> list[list[Line]]:
    """`keys  :name ARGUMENT  title  scope`, `cells` wide, a list of lines each: nothing is cut.

    Where that leaves too little room for titles they stand below the names.
    """
    names = [f":{found.usage}" for found in commands]
    keys = min(_KEYS, max((cell_len(found.key_text) for found in commands), default=0))
    name = min(_NAME, max(map(cell_len, names), default=0))
    scope = _SCOPE if cells >= _WIDE else 0
    return [
        _command_lines(found, names[number], (keys, name, cells - keys - name - scope - 4, scope))
        for number, found in enumerate(commands)
    ]


def _command_lines(found: "Command", name: str, widths: tuple[int, int, int, int]) -> list[Line]:
    """One command; widths: of the columns."""
    keys, room, title, scope = widths
    if title < _TITLE:
        return _stacked(found, name, keys, max(1, keys + room + title + 2))
    columns = _wrapped(found.key_text, keys), _wrapped(name, room), _wrapped(found.title, title - bool(scope))
    where = _SCOPES.get(found.scope, found.scope)
    lines: list[Line] = []
    for number, (key, one, two) in enumerate(zip_longest(*columns, fillvalue="")):
        place = "" if number else where
        line: Line = [(f"{key:<{keys}}  ", "key"), (f"{one:<{room}}  ", "accent"), (f"{two:<{title}}", "")]
        lines.append([*line, (place[:scope], "dim")] if scope else line)
    return lines


def _stacked(found: "Command", name: str, keys: int, cells: int) -> list[Line]:
    """A command in a narrow column: its keys and name, and its title below them."""
    pairs = zip_longest(_wrapped(found.key_text, keys), _wrapped(name, max(1, cells - keys)), fillvalue="")
    heads: list[Line] = [[(f"{key:<{keys}}  ", "key"), (one, "accent")] for key, one in pairs]
    return [*heads, *([(f"  {line}", "")] for line in _wrapped(found.title, cells))]


def _wrapped(text: str, cells: int) -> list[str]:
    return [plain(line) for line in wrap_runs([(text, "")], cells)]
