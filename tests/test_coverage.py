"""docs/coverage.md is kept true: each row's command runs with the exit code it states, each test it names exists."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import json_schema
from support.cli import layerwise
from support.coverage import prepare

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "coverage.md"
PLACES = {"CPU", "H200", "fake", "never"}


@dataclass(frozen=True)
class Row:
    """One capability: what shows it, which test holds it, and where it really ran."""

    capability: str
    commands: tuple[tuple[str, int], ...]
    keys: tuple[str, ...]
    tests: tuple[str, ...]
    places: tuple[str, ...]


def _commands(cell: str) -> tuple[tuple[str, int], ...]:
    found = re.findall(r"`(layerwise [^`]*)`(?: \(exit (\d+)\))?", cell)
    return tuple((command, int(code or 0)) for command, code in found)


def rows() -> list[Row]:
    """The rows of the table, in order."""
    out = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if len(cells) == 5 and cells[0] != "capability" and cells[0].strip("-"):
            cells = [cell.replace("\0", "|") for cell in cells]
            keys = tuple(re.findall(r"`([^`]+)`", cells[2]))
            places = tuple(place.strip() for place in cells[4].split(","))
            tests = tuple(re.findall(r"`(tests/[^`]+)`", cells[3]))
            out.append(Row(cells[0], _commands(cells[1]), keys, tests, places))
    return out


ROWS = rows()
COMMANDS = sorted({command for row in ROWS for command in row.commands})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("coverage"))


def test_every_row_says_where_it_ran_and_no_capability_is_there_twice() -> None:
    assert ROWS
    assert len({row.capability for row in ROWS}) == len(ROWS)
    assert all(set(row.places) <= PLACES for row in ROWS)
    assert all(row.commands or row.keys or row.tests for row in ROWS)


def test_the_page_counts_where_the_capabilities_ran() -> None:
    ran = [set(row.places) for row in ROWS]
    counts = len(ran), *(sum(place in places for places in ran) for place in ("CPU", "H200"))
    alone = sum(places == {"fake"} for places in ran), sum(places == {"never"} for places in ran)
    told = "Of {} capabilities, {} ran on the CPU, {} on the H200, {} on the fake alone, and {} nowhere."
    assert told.format(*counts, *alone) in TABLE.read_text(encoding="utf-8")


NAMED = {test for row in ROWS for test in row.tests}
NAMED |= set(re.findall(r"`(tests/[^`]+\.py)`", (ROOT / "docs" / "tensorrt.md").read_text(encoding="utf-8")))


def test_the_tests_a_row_names_exist() -> None:
    places = {test: (ROOT / test.partition("::")[0], test.partition("::")[2]) for test in sorted(NAMED)}
    assert len(places) > 100
    assert [test for test, (path, _) in places.items() if not path.is_file()] == []
    named = {test: (path, name) for test, (path, name) in places.items() if name}
    assert [test for test, (path, name) in named.items() if f"def {name}(" not in path.read_text("utf-8")] == []


@pytest.mark.parametrize(("command", "code"), COMMANDS)
def test_a_rows_command_ends_as_it_says(command: str, code: int, folder: Path) -> None:
    argv = shlex.split(command)[1:]
    done = layerwise(*argv, cwd=folder)
    assert "Traceback" not in done.stderr + done.stdout, done.stdout + done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    if "--json" in argv:
        document = json.loads(done.stdout)
        named = document if isinstance(document, dict) else (document or [{"schema": "layerwise/jobs-list/1"}])[0]
        schema = named["schema"].split("/")[1]
        published = json.loads((ROOT / "docs" / "schemas" / f"{schema}.json").read_text(encoding="utf-8"))
        assert json_schema.problems(document, published) == []


def test_the_keys_a_row_names_are_bound() -> None:
    import layerwise._tool.tui.workbench  # noqa: F401  (its screens fill the registry)
    from layerwise._tool.tui.commands import REGISTRY

    bound = {key for command in REGISTRY.values() for key in command.key_text.split()}
    assert {key for row in ROWS for key in row.keys} <= bound
