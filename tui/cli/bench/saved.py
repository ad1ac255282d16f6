"""Files of earlier benches, ours and trtexec's: shown, and compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.bench.trtexec_files import is_profile, read_profile, read_times
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import INFO, START, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.exports import read_latencies, read_report
from layerwise._tool.debugtools.bench.significance import compare
from layerwise._tool.debugtools.bench.statistics import statistics
from layerwise._tool.tui.cli.bench.report import BenchReport, layer_lines
from layerwise._tool.tui.cli.json_output import print_json

Row = Mapping[str, Any]
PERCENTS = (90.0, 95.0, 99.0)


def show_saved(path: Path, against: Path | None, log: Log, top: int, command: str, as_json: bool) -> int:
    """Print what a file of an earlier bench holds, and how it compares; the exit code. Raises BadFile, UsageError."""
    report = read_report(path)
    profile = report is None and is_profile(path)
    document = _profile(path, against) if profile else _times(path, report, against)
    if as_json:
        print_json({"command": command, "exit_code": 0, "passed": True, **document})
    elif profile:
        _print_profile(document, log, top)
    else:
        _print_times(document, log, top)
    return 0


def _times(path: Path, report: dict[str, Any] | None, against: Path | None) -> dict[str, Any]:
    rows = report["runs"] if report else [_row(path)]
    runs = [{key: value for key, value in row.items() if key != "latency_ms"} for row in rows]
    comparisons = []
    for row in rows if against is not None else []:
        assert against is not None
        name, latencies = read_latencies(against, row.get("batch"))
        found = compare(row["latency_ms"], latencies)
        comparisons.append({"name": row["runner"], "reference": name, **found.as_row(),
                            "words": found.words(str(row["runner"]), name)})  # fmt: skip
    return {"runs": runs, "comparisons": comparisons, "layers": report.get("layers", []) if report else []}


def _row(path: Path) -> dict[str, Any]:
    times = read_times(path)
    seconds = times.seconds or 1.0
    return {
        "runner": shown(path.name, 60), "batch": None, "streams": 1, "runs": len(times.latency), "seconds": seconds,
        "qps": len(times.latency) / seconds, "items_per_second": len(times.latency) / seconds,
        "latency": statistics(times.latency, PERCENTS), "latency_ms": times.latency,
        "phases": {name: statistics(values, PERCENTS) for name, values in times.phases.items()},
    }  # fmt: skip


def _profile(path: Path, against: Path | None) -> dict[str, Any]:
    layers = [{"name": layer.name, "typical_ms": layer.median_ms, "mean_ms": layer.mean_ms,
               "median_ms": layer.median_ms, "percent": layer.percent} for layer in read_profile(path)]  # fmt: skip
    if against is None:
        return {"layers": layers, "changes": []}
    if not is_profile(against):
        raise UsageError(f"{shown(str(against))} holds times, {shown(str(path))} layers: compare two of a kind")
    before = {layer.name: layer.median_ms for layer in read_profile(against)}
    after = {str(layer["name"]): float(str(layer["median_ms"])) for layer in layers}
    changes = [{"name": name, "ms": after.get(name), "reference_ms": before.get(name),
                "change_ms": after.get(name, 0.0) - before.get(name, 0.0)} for name in {**after, **before}]  # fmt: skip
    return {"layers": layers, "changes": sorted(changes, key=lambda row: -abs(float(str(row["change_ms"]))))}


def _print_times(document: Row, log: Log, top: int) -> None:
    report = BenchReport(log, top)
    for row in document["runs"]:
        report.event({"type": "row", "table": "runs", "row": row})
    for row in document["layers"]:
        report.event({"type": "row", "table": "profile", "row": row})
    for row in document["comparisons"]:
        report.event({"type": "row", "table": "comparisons", "row": row})
    report.event({"type": "result", "data": {}})


def _print_profile(document: Row, log: Log, top: int) -> None:
    _lines(log, f"=== Slowest layers (of {len(document['layers'])}) ===", layer_lines(document["layers"], top))
    if document["changes"]:
        _lines(log, "=== What changed most ===", change_lines(document["changes"][:top]))


def change_lines(rows: Sequence[Row]) -> list[str]:
    """Layers whose time changed, the largest change first."""
    lines = [f"{'change ms':>10} {'ms':>10} {'before ms':>10}  layer"]
    for row in rows:
        lines.append(f"{row['change_ms']:>+10.4g} {_ms(row['ms']):>10} {_ms(row['reference_ms']):>10}  "
                     f"{shown(row['name'], 80)}")  # fmt: skip
    return lines


def _ms(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-"


def _lines(log: Log, title: str, lines: Sequence[str]) -> None:
    log.say(START, title)
    if log.shows(INFO):
        for line in lines:
            log.continued(f"    {line}")
