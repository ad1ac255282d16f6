"""The `:` line: from text to a command, and what could follow."""

from collections.abc import Callable, Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Command, by_verb, in_scopes


def parse_line(text: str, scopes: Sequence[str]) -> tuple[Command | None, str]:
    """The command and its argument. Nothing typed gives None. Raises ValueError with a sentence for the user."""
    verb, _, argument = text.strip().partition(" ")
    if not verb:
        return None, ""
    found = by_verb(verb, scopes)
    if found is None:
        raise ValueError(f"no command {shown(verb, 40)}; `:help` lists them, tab completes")
    return found, argument.strip()


def line_completions(
    text: str, scopes: Sequence[str], arguments: Callable[[Command, str], list[str]], limit: int = 50
) -> list[str]:
    """Whole lines that continue `text`: a verb, or an argument of the verb typed."""
    verb, space, argument = text.lstrip().partition(" ")
    if not space:
        verbs = {found.verb: " " in found.line for found in in_scopes(scopes) if found.line}
        return [name + " " * takes_more for name, takes_more in sorted(verbs.items()) if name.startswith(verb)]
    found = by_verb(verb, scopes)
    return [f"{verb} {offer}" for offer in arguments(found, argument)[:limit]] if found else []
