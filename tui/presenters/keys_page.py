"""The keys of every screen as a page of the documentation, and what a key may mean twice."""

from collections.abc import Iterable, Sequence

from layerwise._tool.tui.commands import REGISTRY, Command, key_name
from layerwise._tool.tui.headless import EQUIVALENTS

SCREENS = (
    ("global", "Everywhere"), ("list", "In a list"), ("pane", "In a pane of text"), ("home", "Home"),
    ("graph", "Graph"), ("errors", "Errors"), ("jobs", "Jobs"), ("debug", "Debug"), ("surgery", "Surgery"),
    ("history", "History of edits"), ("changes", "Side by side"), ("perf", "Perf"), ("matrix", "Matrix"),
    ("run", "Run"),
)  # fmt: skip
TWICE = {
    "enter": "opens what the row under the cursor stands for, whatever that is",
    "space": "chooses on the row under the cursor: a mark in a graph, the next choice of a field",
    "[": "what lies before: the node jumped from; in the Errors table `[e`, the leap before",
    "]": "what lies ahead: forward again; in the Errors table `]e`, the next leap",
}
"""Keys with several meanings, each with the reason; any other has one, or none, on every screen."""


def meanings(commands: Iterable[Command] = ()) -> dict[str, set[str]]:
    """What each key means, over all screens. Of a command of two keys both count: the first as the way to it."""
    found: dict[str, set[str]] = {}
    for command in commands or REGISTRY.values():
        for keys in filter(None, command.keys.split(",")):
            names = [key_name(part) for part in keys.split()]
            found.setdefault("".join(names), set()).add(command.meaning)
            if len(names) > 1:
                found.setdefault(names[0], set()).add(f"{names[0]} …")
    return found


def keys_page() -> str:
    """The page, in Markdown."""
    parts = [_HEAD]
    for scope, title in SCREENS:
        rows = "".join(_row(found) for found in REGISTRY.values() if found.scope == scope)
        if rows:
            parts.append(f"\n## {title}\n\n{_HEADING}{rows}")
    parts.append("\n## Keys with several meanings\n\n" + "".join(f"- `{key}`: {why}.\n" for key, why in TWICE.items()))
    return "".join(parts)


def _row(found: Command) -> str:
    keys = " ".join(f"`{_shown(keys.split())}`" for keys in found.keys.split(",") if keys)
    line = f"`:{found.line}`" if found.line else ""
    headless = f"`layerwise {EQUIVALENTS[found.id]}`" if found.id in EQUIVALENTS else ""
    return f"| {keys} | {line} | {found.title.replace('|', '/')} | `{found.id}` | {headless} |\n"


def _shown(parts: Sequence[str]) -> str:
    return "".join(key_name(part) for part in parts)


_HEADING = "| key | line | what it does | id | without the app |\n|---|---|---|---|---|\n"
_HEAD = """# Keys

This page is made from the registry of commands (`python docs/make_keys.py`). A key means the same on all screens, or
nothing: `R` runs, `x` goes to Surgery, `W` writes to a file. Edits of Surgery begin with `e`; what may follow is shown
above the footer. `escape` goes one step back: from a pane to its list, from a change on view to the graph, from a
filter to all rows. `ctrl+c` leaves a line that is written on, or a list to choose from, and the app where there is
none. `ctrl+z` stops the app for the shell; `fg` brings it back.

Keys may be typed ahead: each is handled when all that those before it do is done, except jobs, which go on beside.
If something takes long, `ctrl+c` twice forgets the keys that wait for it. The questions of a search have keys of their
own, which its footer shows as long as it asks (`g` good, `b` bad, `s` skip, `u` undo). `:keys` lists
and changes keys, by the id of the command; `:headless` copies the command line that does without the app what a command
does.
"""
