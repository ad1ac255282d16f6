"""Rows, events and results have types: no name of a module stands for an object of anything."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNTYPED = re.compile(r"^(\w+)(?:: TypeAlias)? = (?:dict|Mapping|MutableMapping)\[str, Any\]", re.MULTILINE)


def untyped(folder: Path) -> list[str]:
    """`path: name` of each alias of a dict with any values."""
    paths = (path for room in ("debugtools", "backends/jobs", "tui") for path in sorted((folder / room).rglob("*.py")))
    texts = ((path.relative_to(folder), path.read_text("utf-8")) for path in paths)
    return [f"{path}: {name}" for path, text in texts for name in UNTYPED.findall(text)]


def test_no_row_is_a_dict_of_anything() -> None:
    assert untyped(ROOT) == []


def test_such_an_alias_would_be_found(tmp_path: Path) -> None:
    module = tmp_path / "tui/state/perf.py"
    module.parent.mkdir(parents=True)
    module.write_text("from typing import Any\n\nRow = dict[str, Any]\nOther: TypeAlias = Mapping[str, Any]\n")
    assert untyped(tmp_path) == ["tui/state/perf.py: Row", "tui/state/perf.py: Other"]
