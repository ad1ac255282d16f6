"""What the documentation says of the code is there: paths, names, links. Its commands: tests/test_docs_commands.py."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("backends", "surgery", "debugtools", "tui")
CONTRIBUTORS = (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md")
_PLACE = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?|pyproject\.toml)(?::([A-Za-z_][\w.]*))?`")


def places() -> list[tuple[str, str]]:
    """Paths that pages for contributors name, each with the function, class or constant that is named in it."""
    return sorted({found for page in CONTRIBUTORS for found in _PLACE.findall(page.read_text(encoding="utf-8"))})


@cache
def defined(path: Path) -> set[str]:
    """Functions, classes, methods (`Class.method`) and constants of a module; of a package, imported ones too."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom) and path.name != "__init__.py":
            continue
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


def test_what_a_page_for_contributors_names_is_there() -> None:
    found = places()
    assert len(found) > 300
    assert [path for path, _ in found if not (ROOT / path).exists()] == []
    assert [f"{path}:{name}" for path, name in found if name and name not in defined(ROOT / path)] == []


def test_a_term_of_the_glossary_is_one_class() -> None:
    """Two classes of one name may stand in different packages, but not where the glossary says what the word means.

    A document of `--json` bears the name of its command. One is still to be settled.
    """
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = {term.title().replace(" ", "") for term in re.findall(r"^\*\*([a-z ]+)\.\*\*", glossary, re.MULTILINE)}
    places: dict[str, list[str]] = {}
    for path in (path for floor in FLOORS for path in (ROOT / floor).rglob("*.py") if path.parent.name != "documents"):
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(terms & places.keys()) > 10
    assert {name for name, found in places.items() if name in terms and len(found) > 1} == {"Candidate"}


def test_every_package_says_what_is_in_it_and_is_typed() -> None:
    for floor in (*FLOORS, "layerwise"):
        assert (ROOT / floor / "py.typed").is_file()
        for path in (ROOT / floor).rglob("__init__.py"):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def undescribed(text: str) -> list[str]:
    """Public functions and classes of a module that have no docstring; `fill_…` declares a command's options."""
    lines = text.splitlines()
    found = []
    for i, line in enumerate(lines):
        name = re.match(r"(?:async def|def|class) (?!fill_|main\()([a-zA-Z]\w*)", line)
        if name:
            after = next(j for j in range(i, len(lines)) if lines[j].split("  #")[0].endswith(":")) + 1
            found += [] if lines[after].lstrip().startswith('"""') else [name[1]]
    return found


def test_every_public_function_says_what_it_does() -> None:
    paths = (path for floor in FLOORS for path in (ROOT / floor).rglob("*.py") if "template" not in path.parts)
    assert {str(path): found for path in paths if (found := undescribed(path.read_text(encoding="utf-8")))} == {}
    assert undescribed("def f(\n    x: int,\n) -> int:\n    return x\n\n\nclass A:\n    x: int\n") == ["f", "A"]


def test_the_web_site_is_built_strictly() -> None:
    """With --quiet, mkdocs drops its warnings before --strict counts them: a link that leads nowhere then passes."""
    (build,) = re.findall(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "--strict" in build and "--quiet" not in build and " -q" not in build
    assert "- run: make docs\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_every_page_is_on_the_web_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f" {page.name}\n" not in nav] == []


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\*\*(.+?)\.\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert words == sorted(set(words))


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
