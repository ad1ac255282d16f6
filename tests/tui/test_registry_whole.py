"""Every command of the app can be given, is explained, completed where it takes a file or a name, and has a command
line that does the same, unless it is about the screen alone.
"""

import inspect

import pytest

from layerwise._tool.tui import workbench
from layerwise._tool.tui.cli.completion.collect import CommandWords, commands
from layerwise._tool.tui.commands import REGISTRY, parse_line, takes_path
from layerwise._tool.tui.headless import ALONE, EQUIVALENTS, equivalent

assert workbench.PAGES  # the registry is full
MOVES = ("list.", "pane.", "own.")
NO_LIST = {"TEXT", "EXPRESSION", "GLOB", "OPTIONS", "NAME", "TYPE", "OP", "PART", "[BYTES]", "…", "[NODE…]",
           "[TENSOR…]", "NAME=VALUE", "KEYS]"}  # fmt: skip
"""Arguments of the `:` line that are the user's own words."""


@pytest.mark.parametrize("id", sorted(REGISTRY))
def test_words_after_a_command_reach_its_handler_or_are_refused(id: str) -> None:
    found = REGISTRY[id]
    scopes = (found.scope, "global")
    handler = inspect.signature(getattr(found.group, found.method))
    assert parse_line(f"{found.name} ", scopes) == (found, "")
    if len(handler.parameters) > 1:
        assert parse_line(f"{found.name} two words", scopes) == (found, "two words")
    else:
        with pytest.raises(ValueError, match=f"^:{found.name} takes no argument; type :{found.name} alone"):
            parse_line(f"{found.name} two words", scopes)


def test_a_command_that_is_named_instead_takes_an_argument() -> None:
    named = {found.instead for found in REGISTRY.values()} - {""}
    assert named and all(REGISTRY[id].takes_argument for id in named)


@pytest.fixture(scope="module")
def headless() -> dict[str, CommandWords]:
    return {found.words: found for found in commands()}


def test_every_command_has_a_key_or_a_name_and_says_what_it_does() -> None:
    assert not [id for id, found in REGISTRY.items() if not (found.keys or found.line) or not found.title]


def test_an_argument_is_completed_or_the_users_own_words() -> None:
    lacking = [id for id, found in REGISTRY.items() if found.takes_argument and not found.complete
               and not takes_path(found) and found.line.split()[-1] not in NO_LIST]  # fmt: skip
    assert not lacking


def test_every_command_has_a_command_line_or_is_about_the_screen_alone() -> None:
    """One that is new belongs into EQUIVALENTS or ALONE of tui/headless.py."""
    known = {id for id in REGISTRY if not id.startswith(MOVES)}
    assert known == EQUIVALENTS.keys() | ALONE
    assert not EQUIVALENTS.keys() & ALONE


@pytest.mark.parametrize("id", sorted(EQUIVALENTS))
def test_a_command_line_is_one_that_there_is(id: str, headless: dict[str, CommandWords]) -> None:
    first, *words = equivalent(id, "m.onnx", "7")
    assert first == "layerwise"
    found = headless.get(" ".join(words[:2])) or headless[words[0]]
    flags = {flag for option in found.options for flag in option.flags}
    assert {word for word in words if word.startswith("-")} <= flags
