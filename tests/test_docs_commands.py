"""Every command that the documentation shows, in a block or within a sentence, is one that there is."""

import ast
import importlib
import importlib.util
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from layerwise._tool.tui.cli.bench.trtexec import NO_EFFECT, OPTIONS
from layerwise._tool.tui.cli.leaf import fill_parser
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.registry import COMMANDS, Branch, Leaf

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
NO_COMMANDS = {"text", "python", "diff", "yaml"}  # what a fenced block may say that it is, other than commands
OF_OTHERS = {".", "cd", "docker", "export", "git", "pip", "pipx", "uv"}  # commands of the shell and of other programs
OPTIONS_OF_OTHERS = {"--build-arg", "--gpus", "--user"}  # of docker and pip
EXAMPLE = "--pause"  # the option that CONTRIBUTING.md adds
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4,}.*)?\n)+")
_SPAN = re.compile(r"`([^`]+)`")
OF_THE_APP = ("--help", "--version", "--slow-line")
"""Options without a command."""
_PLACEHOLDER = re.compile(r"[A-Z]\w*\.onnx|COMMAND|…")  # what no parser is asked about


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _INDENTED.sub("\n", _FENCED.sub("", page.read_text(encoding="utf-8")))


def block_lines() -> list[str]:
    """The command lines of all blocks, without what is said of them; a line is cut at ; and &&."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [body for kind, body in _FENCED.findall(text) if kind not in NO_COMMANDS]
        for line in "\n".join([*blocks, *_INDENTED.findall(_FENCED.sub("", text))]).splitlines():
            found |= {shlex.join(words) for words in _commands(shlex.split(line, comments=True))}
    return sorted(found)


def _commands(words: list[str]) -> Iterator[list[str]]:
    """The commands of a line, which `&&` or a word with a semicolon at its end parts."""
    command: list[str] = []
    for word in [*words, "&&"]:
        if word != "&&":
            command.append(word.removesuffix(";"))
        if word == "&&" or word.endswith(";"):
            if command:
                yield command
            command = []


def spans() -> list[str]:
    """Commands of ours that a sentence names: `run`, `debug build --until auto`, `layerwise jobs`."""
    found = set()
    for page in PAGES:
        for span in _SPAN.findall(prose(page)):
            words = span.split()
            if words and (words[0] == "layerwise" or words[0] in COMMANDS) and not _is_run(page, words[0]):
                found.add(" ".join(words))
    return sorted(found)


def _is_run(page: Path, word: str) -> bool:
    """Whole commands of the coverage are run by tests/test_coverage.py."""
    return page.name == "coverage.md" and word == "layerwise"


def options() -> list[str]:
    """Options that a sentence names without their command."""
    named = {span.split("=")[0].split()[0] for page in PAGES for span in _SPAN.findall(prose(page)) if span[:2] == "--"}
    return sorted(named - OPTIONS_OF_OTHERS - {EXAMPLE})


def leaf_of(words: list[str]) -> tuple[Leaf, list[str]]:
    """The command that the words name, and its arguments; KeyError if there is none."""
    entry = COMMANDS[words[0]]
    if isinstance(entry, Leaf):
        return entry, words[1:]
    if len(words) > 1 and words[1] in entry.leaves:
        return entry.leaves[words[1]], words[2:]
    assert entry.default is not None, words
    return entry.leaves[entry.default], words[1:]


def parser_of(leaf: Leaf) -> Parser:
    parser = Parser(leaf.name, leaf.summary)
    fill_parser(parser, leaf)
    return parser


@cache
def options_of(leaf: Leaf) -> frozenset[str]:
    """The options of a command as they are spelled, those of trtexec too where it takes them."""
    parser = parser_of(leaf)
    own = {flag for action in parser._actions for flag in action.option_strings}
    return frozenset(own | ({*OPTIONS, *NO_EFFECT} if leaf.name == "bench" else set()))


@cache
def every_leaf() -> dict[str, Leaf]:
    """All commands by the words that name them."""
    found: dict[str, Leaf] = {}
    for word, entry in COMMANDS.items():
        if isinstance(entry, Branch):
            found |= {f"{word} {name}": leaf for name, leaf in entry.leaves.items()}
        else:
            found[word] = entry
    return found


def wrong(check: Callable[[str], None], texts: Sequence[str]) -> dict[str, str]:
    """Of each text that a check fails for, why."""
    found = {}
    for text in texts:
        try:
            check(text)
        except (AssertionError, SystemExit, LookupError, ValueError) as error:
            found[text] = f"{type(error).__name__}: {error}"
    return found


def test_command_lines_are_understood() -> None:
    lines = block_lines()
    assert len(lines) > 100
    assert wrong(_understand, lines) == {}


def _understand(line: str) -> None:
    program, *words = shlex.split(line)
    program = program.removeprefix(".venv/bin/")
    if program == "layerwise":
        if words and words[0] in COMMANDS:
            leaf, arguments = leaf_of(words)
            parser_of(leaf).parse_args(arguments)
        else:
            models = [word for word in words if word.endswith(".onnx")]
            assert [word for word in words if word not in OF_THE_APP] == models[:1], (
                "neither a command nor a model for the app"
            )
    elif program == "make":
        assert set(words) <= _targets()
    elif program == "python":
        _assert_python_runs(words)
    else:
        assert program in OF_OTHERS


def _targets() -> set[str]:
    return set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def _assert_python_runs(words: list[str]) -> None:
    """The module of -m is there, and so are the tests that are named; a script is one that a bundle holds."""
    if words[0] != "-m":
        assert words == ["bug/repro.py"]
        return
    assert _is_module(words[1])
    for word in words[2:]:
        assert not word.startswith("tests/") or (ROOT / word).exists(), word


def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    if place.parent == ROOT and not place.is_dir():
        return importlib.util.find_spec(name) is not None
    return place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_commands_within_a_sentence_are_there_with_their_options() -> None:
    found = spans()
    assert len(found) > 100
    assert wrong(_find_command, found) == {}


def _find_command(span: str) -> None:
    for alternative in _alternatives(span.removeprefix("layerwise").split()):
        if not alternative or alternative[0] in OF_THE_APP or _PLACEHOLDER.fullmatch(alternative[0]):
            continue
        if alternative[1:] == ["--help"] and alternative[0] in COMMANDS:
            continue
        if len(alternative) == 1 and (alternative[0] in COMMANDS or alternative[0].endswith(".onnx")):
            continue
        leaf, arguments = leaf_of(alternative)
        flags = {word.split("=")[0] for word in arguments if word.startswith("-")}
        assert flags <= options_of(leaf), flags - options_of(leaf)


def _alternatives(words: list[str]) -> Iterator[list[str]]:
    """`plugin list|match` names two commands."""
    if len(words) < 2:
        yield words
        return
    for second in words[1].split("|"):
        yield [words[0], second, *words[2:]]


def test_options_within_a_sentence_are_those_of_a_command() -> None:
    known = frozenset(OF_THE_APP).union(*map(options_of, every_leaf().values()))
    found = options()
    assert len(found) > 50
    assert [option for option in found if option not in known] == []


@pytest.mark.parametrize(
    "module", sorted({m for page in PAGES for m in re.findall(r"`python -m ([\w.]+)", prose(page))})
)
def test_a_module_that_a_sentence_runs_is_there(module: str) -> None:
    assert module == "tf2onnx.convert" or _is_module(module)


def test_every_command_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert [name for name in every_leaf() if not re.search(rf"(`|layerwise ){name}(?![\w-])", text)] == []


def test_fenced_python_parses_and_imports_what_there_is() -> None:
    found = [body for page in PAGES for kind, body in _FENCED.findall(page.read_text("utf-8")) if kind == "python"]
    assert found
    for body in found:
        for node in ast.walk(ast.parse(body)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module != "torch":  # tests/debugtools/torch
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names), node.module
