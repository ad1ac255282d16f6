"""Writes the files of a bench: trtexec's JSON, a full report, tables as CSV."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import asdict
from numpy.typing import NDArray

from layerwise._tool.backends.bench.timed import Timing
from layerwise._tool.backends.bench.trtexec_files import ProfileLayer, write_profile, write_times
from layerwise._tool.backends.errors import BadFile, writing
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import BenchResult, ProfileRow, RunRow, SavedReport, SavedRun

FORMAT = "layerwise bench 1"
_COLUMNS = ("runner", "batch", "streams", "runs", "seconds", "qps", "items_per_second")


@dataclass(frozen=True)
class Run:
    """One runner at one batch size: its row in the table runs, its timings, and the phases they separate."""

    row: RunRow
    timings: Sequence[Timing]
    phases: tuple[str, ...]

    @property
    def latencies(self) -> list[float]:
        """Return latencies in milliseconds, in order of start."""
        return [(timing[1] - timing[0]) * 1000 for timing in self.timings]


def write(path: str, text: str) -> None:
    """Write a file atomically. LayerwiseError if that fails."""
    with writing(shown(path)):
        write_named(path, text)


def times_text(path: str, run: Run) -> str:
    """Return the text of `--export-times`: trtexec's JSON, or CSV with a line per run."""
    if not _is_csv(path):
        return write_times(run.timings, run.phases)
    origin = run.timings[0][0]
    rows = [[(start - origin) * 1000, (end - start) * 1000, *(length * 1000 for length in lengths)]
            for start, end, *lengths in run.timings]  # fmt: skip
    return _csv(["start_ms", "latency_ms", *(f"{name}_ms" for name in run.phases)], rows)


def profile_text(path: str, rows: Sequence[ProfileRow], count: int) -> str:
    """Return the text of `--export-profile`: trtexec's JSON, or CSV with a line per layer."""
    if _is_csv(path):
        names = ("i", "name", "op", "provider", "node", "calls", "mean_ms", "median_ms", "total_ms", "percent")
        return _csv(names, [[getattr(row, name) for name in names] for row in rows])
    layers = [ProfileLayer(row.name, row.mean_ms, row.median_ms, row.percent, row.total_ms) for row in rows]
    return write_profile(layers, count)


def output_text(outputs: Mapping[str, NDArray[Any]]) -> str:
    """Return the text of trtexec's `--exportOutput`: name, dimensions and values of each output."""
    rows = [
        {"name": name, "dimensions": "x".join(map(str, array.shape)), "values": array.reshape(-1).tolist()}
        for name, array in outputs.items()
    ]
    return json.dumps(rows)


def report_text(path: str, result: BenchResult, runs: Sequence[Run], layers: Sequence[ProfileRow]) -> str:
    """Return the text of `-o`: everything, as JSON to compare with later, or CSV with a line per run."""
    if _is_csv(path):
        return _summary(runs)
    measured = [SavedRun(**asdict(run.row), latency_ms=[round(value, 6) for value in run.latencies]) for run in runs]
    report = SavedReport(**asdict(result) | {"runs": measured}, layers=list(layers), format=FORMAT)
    return json.dumps(to_builtins(report), indent=1)


def _summary(runs: Sequence[Run]) -> str:
    percents = list(runs[0].row.latency.percentiles) if runs else []
    figures = ("min", "mean", "median", "max", "cov")
    names = [*_COLUMNS, *(f"{name}_ms" for name in figures[:-1]), "cov_percent", *(f"p{name}_ms" for name in percents)]
    lines = []
    for run in runs:
        row, latency = run.row, run.row.latency
        lines.append([*(getattr(row, name) for name in _COLUMNS), *(getattr(latency, name) for name in figures),
                      *(latency.percentiles[name] for name in percents)])  # fmt: skip
    return _csv(names, lines)


def read_latencies(path: Path, batch: int | None) -> tuple[str, list[float]]:
    """Return latencies (ms) of a report (its run of that batch size, else its first) or trtexec's times, and a label.

    Raises BadFile for anything else.
    """
    from layerwise._tool.backends.bench.trtexec_files import read_times

    report = read_report(path)
    if report is None:
        return shown(path.name, 60), read_times(path).latency
    run = next((run for run in report.runs if run.batch == batch), report.runs[0])
    return f"{shown(path.name, 60)} ({shown(run.runner, 60)})", run.latency_ms


def read_report(path: Path) -> SavedReport | None:
    """Return a report written by `-o`, None for other files. BadFile if it is not JSON, or a broken report."""
    report = read_json(path)
    if not isinstance(report, dict):
        return None
    try:
        found = convert(report, SavedReport)
    except ValidationError:
        found = None
    if found is None or found.format != FORMAT or not found.runs or not all(run.latency_ms for run in found.runs):
        raise BadFile(path, "is no report of a bench that this version can read")
    return found


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()
