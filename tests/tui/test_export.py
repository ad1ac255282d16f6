"""Rows taken elsewhere as CSV, JSON and SVG; sorting by the words of the heading."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.controllers.error_rows import export_rows
from layerwise._tool.tui.presenters.course import svg_lines
from layerwise._tool.tui.state.errors_page import ErrorsState

HOSTILE = 'a,"b"\n</text><script>\x1b[31m'


@pytest.fixture
def errors() -> ErrorsState:
    """A comparison of three tensors; the second is bad, the third has no relative error."""
    state = ErrorsState()
    rows = [
        LayerRow(i=0, op="Relu", tensor="r", rel_l2=1e-7, max_abs=1e-6, passed=True),
        LayerRow(i=1, op="Add", tensor=HOSTILE, rel_l2=float("inf"), max_abs=2.0, passed=False, finding="overflow"),
        LayerRow(i=2, op="Cast", tensor="=1+1", max_abs=0, passed=None),
    ]
    for row in rows:
        state.table.add(row)
    state.refresh(always=True)
    return state


def test_csv_has_a_line_for_each_row_and_computes_nothing(errors: ErrorsState, tmp_path: Path) -> None:
    assert export_rows(errors, tmp_path / "t.csv") == 3
    with (tmp_path / "t.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["tensor"] for row in rows] == ["r", HOSTILE, "'=1+1"]
    assert [row["passed"] for row in rows] == ["true", "false", ""]
    assert float(rows[0]["rel_l2"]) == 1e-7 and rows[2]["rel_l2"] == ""


def test_json_and_text_stay(errors: ErrorsState, tmp_path: Path) -> None:
    export_rows(errors, tmp_path / "t.JSON")
    assert [row["i"] for row in json.loads((tmp_path / "t.JSON").read_text())] == [0, 1, 2]
    export_rows(errors, tmp_path / "t.txt")
    assert "Relu" in (tmp_path / "t.txt").read_text()


def test_svg_has_a_dot_for_each_row_with_an_error(errors: ErrorsState, tmp_path: Path) -> None:
    export_rows(errors, tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text()
    root = ElementTree.fromstring(text)
    dots = root.findall("{*}circle")
    assert len(dots) == 2 and "\x1b" not in text and not root.findall(".//{*}script")
    high, low = float(dots[1].get("cy", "")), float(dots[0].get("cy", ""))
    assert high < low


@pytest.mark.parametrize("rows", [[], [LayerRow(rel_l2=0.0)], [LayerRow(rel_l2=float("nan"))]])
def test_a_picture_of_little_is_one(rows: list[LayerRow]) -> None:
    picture = ElementTree.fromstring("\n".join(svg_lines("t", rows)))
    assert len(picture.findall("{*}circle")) == len(rows)
