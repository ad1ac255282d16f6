"""What the documentation tells users to type is what the command line takes."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from layerwise._tool.tui.cli import registry
from layerwise._tool.tui.cli.options.common import add_logging
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf

ROOT = Path(__file__).parent.parent
DOCS = (ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "bench.md")
_WITHOUT_OPTIONS = re.compile(r"layerwise (\[|[A-Z]\w*\.onnx$|COMMAND)")


def lines() -> list[str]:
    """The indented command lines, without what is said of them."""
    found = [line for page in DOCS for line in re.findall(r"^ {4,}(layerwise .*)$", page.read_text(), re.MULTILINE)]
    told = {shlex.join(part) for line in found for part in _commands(shlex.split(line, comments=True))}
    return sorted(line for line in told if not _WITHOUT_OPTIONS.match(line))


def _commands(words: list[str]) -> Iterator[list[str]]:
    """The commands of a line, which a word with a semicolon at its end parts."""
    ends = [at + 1 for at, word in enumerate(words) if word.endswith(";")]
    for start, end in zip([0, *ends], [*ends, len(words)], strict=True):
        yield [word.removesuffix(";") for word in words[start:end]]


def leaf_of(words: list[str]) -> tuple[Leaf, list[str]]:
    """The command that a line names, and its arguments."""
    entry = COMMANDS[words[0]]
    if isinstance(entry, Leaf):
        return entry, words[1:]
    return branch_leaf(entry, words[1:])


def branch_leaf(branch: Branch, rest: list[str]) -> tuple[Leaf, list[str]]:
    if rest and rest[0] in branch.leaves:
        return branch.leaves[rest[0]], rest[1:]
    assert branch.default is not None, rest
    return branch.leaves[branch.default], rest


@pytest.mark.parametrize("line", lines())
def test_a_line_of_the_documentation_is_understood(line: str) -> None:
    leaf, arguments = leaf_of(shlex.split(line)[1:])
    parser = Parser(line, leaf.summary)
    getattr(importlib.import_module(leaf.module, registry.__package__), f"fill_{leaf.name}")(parser)
    add_logging(parser)
    parser.parse_args(arguments)


@pytest.mark.parametrize("page", [*DOCS, *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
