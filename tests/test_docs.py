"""What the documentation tells users to type is what the command line takes, and what it says of the code is there."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from layerwise._tool.tui.cli import registry
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf

ROOT = Path(__file__).parent.parent
CONTRIBUTORS = (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md")
DOCS = (ROOT / "README.md", *(ROOT / "docs" / name for name in ("guide.md", "reference.md", "bench.md")), *CONTRIBUTORS)
_PLACE = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?|pyproject\.toml)(?::([A-Za-z_][\w.]*))?`")
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
    LOGGING.add(parser)
    parser.parse_args(arguments)


def places() -> list[tuple[str, str]]:
    """Paths that pages for contributors name, each with the function, class or constant that is named in it."""
    return sorted({found for page in CONTRIBUTORS for found in _PLACE.findall(page.read_text(encoding="utf-8"))})


def defined(path: Path) -> set[str]:
    """Functions, classes, methods (`Class.method`) and constants of a module, imported ones too."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for name in _names(node):
            found |= {name, *(f"{name}.{inner}" for part in getattr(node, "body", ()) for inner in _names(part))}
    return found


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case _:
            return []


@pytest.mark.parametrize(("path", "name"), places())
def test_what_a_page_for_contributors_names_is_there(path: str, name: str) -> None:
    assert (ROOT / path).exists(), path
    if name:
        assert name in defined(ROOT / path), f"{path}:{name}"


def test_every_package_says_what_is_in_it_and_is_typed() -> None:
    for floor in ("backends", "surgery", "debugtools", "tui", "layerwise"):
        assert (ROOT / floor / "py.typed").is_file()
        for path in (ROOT / floor).rglob("__init__.py"):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_every_page_is_on_the_web_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f" {page.name}\n" not in nav] == []


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\*\*(.+?)\.\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert words == sorted(set(words))


@pytest.mark.parametrize("page", [*DOCS, *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
