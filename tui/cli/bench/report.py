"""The report of a bench as lines: those of trtexec's performance summary, the slowest layers, comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import convert

from layerwise._tool.backends.log import INFO, LEVELS, START, WARNING, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.bench import rows as types

TOP = 15
_PHASES = {"enqueue": "Enqueue Time", "h2d": "H2D Latency", "compute": "GPU Compute Time", "d2h": "D2H Latency"}
_BAR = 20
_NAME = 60


def summary_lines(row: types.RunRow) -> Iterator[str]:
    """trtexec's summary of one run; a phase is named only where it is told apart from the whole."""
    items = f" ({row.items_per_second:g} items/s at batch {row.batch})" if row.batch else ""
    yield f"Throughput: {row.qps:g} qps{items}"
    yield f"Latency: {_figures(row.latency)}"
    for name, title in _PHASES.items() if len(row.phases) > 1 else ():
        if name in row.phases:
            yield f"{title}: {_figures(row.phases[name])}"
    yield f"Total Host Walltime: {row.seconds:.4g} s, {row.runs} runs on {row.streams} stream(s)"


def _figures(found: types.Statistics) -> str:
    percents = "".join(f", percentile({name}%) = {value:.6g} ms" for name, value in found.percentiles.items())
    plain = ", ".join(f"{name} = {getattr(found, name):.6g} ms" for name in ("min", "max", "mean", "median"))
    return plain + percents


def batch_lines(rows: Sequence[types.RunRow]) -> list[str]:
    """Throughput by batch size, the best of each runner marked."""
    lines = [f"{'runner':<24} {'batch':>6} {'median ms':>10} {'p99 ms':>10} {'items/s':>12}"]
    for row in rows:
        most = max(other.items_per_second for other in rows if other.runner == row.runner)
        last = [row.latency.max, *row.latency.percentiles.values()][-1]
        best = "  most" if row.items_per_second == most else ""
        lines.append(f"{shown(row.runner, 24):<24} {row.batch:>6} {row.latency.median:>10.4g} {last:>10.4g} "
                     f"{row.items_per_second:>12.6g}{best}")  # fmt: skip
    return lines


def layer_lines(rows: Sequence[types.LayerTimes], top: int) -> list[str]:
    """The slowest layers, their share of the time of all, and how much they come to together."""
    ordered = sorted(rows, key=lambda row: -row.percent)
    lines = [f"{'ms':>10} {'share':>7} {'up to here':>10}  {'':{_BAR}} {'op':<18} layer"]
    total = 0.0
    most = max((row.percent for row in rows), default=0.0) or 1.0
    for row in ordered[:top]:
        total += row.percent
        bar = "#" * max(1, round(_BAR * row.percent / most))
        op = row.op if isinstance(row, types.ProfileRow) else ""
        lines.append(f"{row.typical_ms:>10.4g} {row.percent:>6.1f}% {total:>9.1f}%  {bar:<{_BAR}} {shown(op, 18):<18} "
                     f"{shown(row.name, _NAME)}")  # fmt: skip
    if len(rows) > top:
        lines.append(f"… and {len(rows) - top} more: --top N, or --export-profile FILE")
    return lines


class BenchReport:
    """Prints a bench as it goes, its `top` slowest layers at the end."""

    def __init__(self, log: Log, top: int) -> None:
        self._log, self._top = log, top
        self._runs: list[types.RunRow] = []
        self._profile: dict[str, list[types.ProfileRow]] = {}

    def event(self, event: Mapping[str, Any]) -> None:
        """Take one event of the job."""
        kind = event.get("type")
        if kind == "row":
            table = str(event.get("table"))
            if table in types.ROWS:
                self.row(convert(event["row"], types.ROWS[table]))
        elif kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self._log.say(level, shown_lines(event.get("text")))
        elif kind == "dropped":
            self._runs, self._profile = [], {}
        elif kind == "result":
            self.finish(convert(event["data"], types.BenchResult))

    def row(self, row: types.RunRow | types.ComparisonRow | types.ProfileRow) -> None:
        """Take one row."""
        if isinstance(row, types.RunRow):
            self._runs.append(row)
            batch = f", batch {row.batch}" if row.batch else ""
            self._say(f"=== Performance summary: {row.runner}{batch} ===", summary_lines(row))
        elif isinstance(row, types.ComparisonRow):
            self._log.say(INFO, shown(row.words, 600))
        else:
            self._profile.setdefault(row.runner, []).append(row)

    def finish(self, result: types.BenchResult) -> None:
        """Print what all rows together come to."""
        if len({row.batch for row in self._runs}) > 1:
            self._say("=== Throughput by batch size ===", batch_lines(self._runs))
        for name, rows in self._profile.items():
            self._say(f"=== Slowest layers: {name} (of {len(rows)}) ===", layer_lines(rows, self._top))
        if not self._runs:
            for name, seconds in result.opening_seconds.items():
                self._log.say(INFO, f"{shown(name, 200)} opened in {seconds:.3g} s; nothing was run")

    def _say(self, title: str, lines: Iterator[str] | list[str]) -> None:
        self._log.say(START, shown(title, 200))
        if self._log.shows(INFO):
            for line in lines:
                self._log.continued(f"    {line}")
