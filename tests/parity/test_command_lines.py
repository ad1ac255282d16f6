"""Polygraphy's command lines with its name changed: same exit code, same files, same lines that scripts read.

The table is tests/parity/lines, and that with TensorRT tests/parity/trt_lines.txt; a line there says if it differs on
purpose, and which heading of docs/coming-from-polygraphy.md says why.
"""

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from parity.lines import TRT_TABLE, Line, lines
from polygraphy.tools.registry import TOOL_REGISTRY
from support.lines_compared import assert_as_told, contents
from support.two_files import make_files
from support.two_programs import TwoPrograms


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    make_files(folder)
    return folder


@pytest.fixture(scope="module")
def originals(files: Path) -> dict[str, bytes]:
    return contents(files)


@pytest.fixture(scope="module")
def programs(files: Path) -> TwoPrograms:
    return TwoPrograms(files)


LINES = lines()


@pytest.mark.parametrize("line", LINES, ids=[line.words for line in LINES])
def test_a_command_line_does_what_it_does_in_polygraphy(
    line: Line, programs: TwoPrograms, originals: dict[str, bytes]
) -> None:
    assert_as_told(line, programs, originals)


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The subcommands of a parser of Polygraphy, and theirs."""
    branches = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for branch in branches:
        for word, below in branch.choices.items():
            yield from leaves(below, (*words, word))
    if not branches:
        yield " ".join(words), parser


def test_every_option_of_the_installed_polygraphy_is_in_a_line() -> None:
    parser = argparse.ArgumentParser()
    tools = parser.add_subparsers()
    for tool in TOOL_REGISTRY:
        tool.setup_parser(tools)
    missing = []
    for words, leaf in leaves(parser, ()):
        told = [*(line for line in LINES if line.words.startswith(f"{words} ")), *TRT_TABLE.get(words, [])]
        given = {*shlex.split(" ".join(line.words for line in told)), "--help"}
        options = [action.option_strings for action in leaf._actions if action.option_strings]
        missing += [f"{words} {option[0]}" for option in options if not given & set(option)]
    assert not missing
