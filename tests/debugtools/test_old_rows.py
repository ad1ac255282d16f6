"""Rows and results that were written before some of their fields came still load."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of, typed
from layerwise._tool.backends.jobs.journal.events import EventWriter, read_events
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.run.report import CompareReport

OLD: dict[str, Any] = {
    "iteration": 0, "pair": [0, 1], "i": 3, "node": "/n", "op": "Add", "tensor": "y", "mode": "plain",
    "dtype": ["float32", "float32"], "shape": [2], "size": 2, "atol": 1e-5, "rtol": 1e-5, "over": 1,
    "nan": [0, 1], "inf": [0, 0], "max_abs": 3, "min_abs": 0.0, "mean_abs": 1.5, "std_abs": 1.5, "argmin_abs": [0],
    "argmax_abs": [1], "max_rel": float("inf"), "min_rel": 0.0, "mean_rel": 1.0, "std_rel": 1.0, "argmin_rel": [0],
    "argmax_rel": [1], "l2": 3.0, "cosine": 0.5, "psnr": 1.0, "snr": 1.0, "required": {"abs": 3, "rel": 2.0},
    "stats": [{"mean": 1.0, "std": 2.0, "min": -1, "argmin": [0], "max": 3, "argmax": [1], "avg_magnitude": 1.5}, None],
    "ampl": None, "rel_l2": float("nan"), "finding": "nan", "metrics": {"simple": False}, "passed": False, "note": "",
}  # fmt: skip
"""A row as the first version wrote it: without `stat` and `first_nan`."""


RESULT = {
    "passed": False, "n_rows": 1, "n_failed": 1, "runners": ["a", "b"], "iterations": 1, "summary": [], "seconds": 1.0,
    "first_bad": {"iteration": 0, "pair": [0, 1], "i": 3, "node": "/n", "op": "Add", "tensor": "y", "mode": "plain"},
    "worst": None, "peak_memory": 5, "canary": None, "skipped": [], "unmatched": [],
}  # fmt: skip
"""A result as the first version wrote it: what was not compared is not in it."""


def test_a_row_of_the_first_version_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    for row in (OLD, OLD | {"size": "many"}):  # the second is damaged: it is left out
        writer.write("row", table="layers", row=row)
    (found,) = typed(rows_of(tmp_path, "layers"), LayerRow)
    assert (found.key, found.stat, found.first_nan, found.max_abs) == ((0, (0, 1), "y"), "elemwise", None, 3)
    later = {"stat": "elemwise", "first_nan": None}
    assert json.dumps(msgspec.to_builtins(found), sort_keys=True) == json.dumps(OLD | later, sort_keys=True)


def test_a_journal_of_the_first_version_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = EventWriter(tmp_path)
    writer.write("row", table="layers", row=OLD)
    writer.write("result", data=RESULT)
    report = CompareReport(Log(INFO), CompareSpec())
    for event in read_events(tmp_path):
        report.event(event)
    told = "".join(capsys.readouterr())
    assert "FAILED | Output: 'y' | Difference exceeds tolerance (rel=1e-05, abs=1e-05)" in told
    assert "Accuracy Summary | a vs. b | Passed: 0/1 iterations" in told
    assert msgspec.convert(RESULT, CompareResult).not_compared == []
