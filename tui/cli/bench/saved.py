"""Files of earlier benches, ours and trtexec's: shown, and compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins

from layerwise._tool.backends.bench.trtexec_files import is_profile, read_profile, read_times
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import INFO, START, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench import rows as types
from layerwise._tool.debugtools.bench.exports import read_latencies, read_report
from layerwise._tool.debugtools.bench.statistics import compare, statistics
from layerwise._tool.tui.cli.bench.report import BenchReport, layer_lines
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.reports import Reporter

if TYPE_CHECKING:
    from layerwise._tool.debugtools.report.structure import Section

PERCENTS = (90.0, 95.0, 99.0)


class SavedTimes(Struct):
    """The document of `--json` for a file of times."""

    runs: list[types.RunRow]
    comparisons: list[types.ComparisonRow]
    layers: list[types.ProfileRow]


class SavedProfile(Struct):
    """The document of `--json` for a file of layers. changes: since another one, the largest first."""

    layers: list[types.LayerTimes]
    changes: list[types.ChangeRow]


def show_saved(path: Path, against: Path | None, log: Log, top: int, command: str, as_json: bool,
               reporter: Reporter | None = None) -> int:  # fmt: skip
    """Print what a file of an earlier bench holds, and how it compares; the exit code. Raises BadFile, UsageError."""
    report = read_report(path)
    profile = report is None and is_profile(path)
    document = _profile(path, against) if profile else _times(path, report, against)
    if as_json:
        print_json({"command": command, "exit_code": 0, "passed": True, **to_builtins(document)}, "bench file")
    elif isinstance(document, SavedProfile):
        _print_profile(document, log, top)
    else:
        _print_times(document, log, top)
    return 0 if reporter is None else reporter.sections("bench", _sections(document), 0)


def _sections(document: SavedTimes | SavedProfile) -> "list[Section]":
    """What a report tells of a file."""
    from layerwise._tool.debugtools.report.collected import Collected
    from layerwise._tool.debugtools.report.of_bench import bench_sections

    collected, found = Collected(), to_builtins(document)
    collected.tables = {"runs": found.get("runs", []), "comparisons": found.get("comparisons", [])}
    return bench_sections(collected)


def _times(path: Path, report: types.SavedReport | None, against: Path | None) -> SavedTimes:
    saved = report.runs if report else [_run(path)]
    comparisons = []
    for run in saved if against is not None else []:
        assert against is not None
        name, latencies = read_latencies(against, run.batch)
        comparisons.append(compare(run.latency_ms, latencies).row(run.runner, name))
    runs = [types.RunRow(**{name: getattr(run, name) for name in types.RunRow.__struct_fields__}) for run in saved]
    return SavedTimes(runs, comparisons, report.layers if report else [])


def _run(path: Path) -> types.SavedRun:
    times = read_times(path)
    seconds, count = times.seconds or 1.0, len(times.latency)
    return types.SavedRun(
        runner=shown(path.name, 60), runs=count, seconds=seconds, qps=count / seconds,
        items_per_second=count / seconds, latency=statistics(times.latency, PERCENTS), latency_ms=times.latency,
        phases={name: statistics(values, PERCENTS) for name, values in times.phases.items()},
    )  # fmt: skip


def _profile(path: Path, against: Path | None) -> SavedProfile:
    layers = [types.LayerTimes(name=layer.name, typical_ms=layer.median_ms, mean_ms=layer.mean_ms,
                               median_ms=layer.median_ms, percent=layer.percent)
              for layer in read_profile(path)]  # fmt: skip
    if against is None:
        return SavedProfile(layers, [])
    if not is_profile(against):
        raise UsageError(f"{shown(str(against))} holds times, {shown(str(path))} layers: compare two of a kind")
    before = {layer.name: layer.median_ms for layer in read_profile(against)}
    after = {layer.name: layer.median_ms for layer in layers}
    changes = [types.ChangeRow(name, after.get(name), before.get(name), after.get(name, 0.0) - before.get(name, 0.0))
               for name in {**after, **before}]  # fmt: skip
    return SavedProfile(layers, sorted(changes, key=lambda row: -abs(row.change_ms)))


def _print_times(document: SavedTimes, log: Log, top: int) -> None:
    report = BenchReport(log, top)
    rows: list[types.RunRow | types.ComparisonRow | types.ProfileRow] = [
        *document.runs,
        *document.layers,
        *document.comparisons,
    ]
    for row in rows:
        report.row(row)
    report.finish(types.BenchResult())


def _print_profile(document: SavedProfile, log: Log, top: int) -> None:
    _lines(log, f"=== Slowest layers (of {len(document.layers)}) ===", layer_lines(document.layers, top))
    if document.changes:
        _lines(log, "=== What changed most ===", change_lines(document.changes[:top]))


def change_lines(rows: Sequence[types.ChangeRow]) -> list[str]:
    """Layers whose time changed, the largest change first."""
    lines = [f"{'change ms':>10} {'ms':>10} {'before ms':>10}  layer"]
    for row in rows:
        lines.append(f"{row.change_ms:>+10.4g} {_ms(row.ms):>10} {_ms(row.reference_ms):>10}  {shown(row.name, 80)}")
    return lines


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _lines(log: Log, title: str, lines: Sequence[str]) -> None:
    log.say(START, title)
    if log.shows(INFO):
        for line in lines:
            log.continued(f"    {line}")
