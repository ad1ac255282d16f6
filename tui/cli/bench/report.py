"""The report of a bench as lines: those of trtexec's performance summary, the slowest layers, comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from layerwise._tool.backends.log import INFO, LEVELS, START, WARNING, Log
from layerwise._tool.backends.text import shown, shown_lines

Row = Mapping[str, Any]
TOP = 15
_PHASES = {"enqueue": "Enqueue Time", "h2d": "H2D Latency", "compute": "GPU Compute Time", "d2h": "D2H Latency"}
_BAR = 20
_NAME = 60


def summary_lines(row: Row) -> Iterator[str]:
    """trtexec's summary of one run; a phase is named only where it is told apart from the whole."""
    yield f"Throughput: {row['qps']:g} qps" + (
        f" ({row['items_per_second']:g} items/s at batch {row['batch']})" if row.get("batch") else ""
    )
    yield f"Latency: {_figures(row['latency'])}"
    phases = row["phases"]
    if len(phases) > 1:
        for name, title in _PHASES.items():
            if name in phases:
                yield f"{title}: {_figures(phases[name])}"
    yield f"Total Host Walltime: {row['seconds']:.4g} s, {row['runs']} runs on {row['streams']} stream(s)"


def _figures(found: Row) -> str:
    percents = "".join(f", percentile({name}%) = {value:.6g} ms" for name, value in found["percentiles"].items())
    plain = ", ".join(f"{name} = {found[name]:.6g} ms" for name in ("min", "max", "mean", "median"))
    return plain + percents


def batch_lines(rows: Sequence[Row]) -> list[str]:
    """Throughput by batch size, the best of each runner marked."""
    lines = [f"{'runner':<24} {'batch':>6} {'median ms':>10} {'p99 ms':>10} {'items/s':>12}"]
    for row in rows:
        most = max(other["items_per_second"] for other in rows if other["runner"] == row["runner"])
        latency = row["latency"]
        last = list(latency["percentiles"].values())[-1:] or [latency["max"]]
        best = "  most" if row["items_per_second"] == most else ""
        lines.append(f"{shown(row['runner'], 24):<24} {row['batch']:>6} {latency['median']:>10.4g} {last[0]:>10.4g} "
                     f"{row['items_per_second']:>12.6g}{best}")  # fmt: skip
    return lines


def layer_lines(rows: Sequence[Row], top: int) -> list[str]:
    """The slowest layers, their share of the time of all, and how much they come to together."""
    ordered = sorted(rows, key=lambda row: -row["percent"])
    lines = [f"{'ms':>10} {'share':>7} {'up to here':>10}  {'':{_BAR}} {'op':<18} layer"]
    total = 0.0
    most = max((row["percent"] for row in rows), default=0.0) or 1.0
    for row in ordered[:top]:
        total += row["percent"]
        bar = "#" * max(1, round(_BAR * row["percent"] / most))
        lines.append(f"{row['typical_ms']:>10.4g} {row['percent']:>6.1f}% {total:>9.1f}%  {bar:<{_BAR}} "
                     f"{shown(row.get('op') or '', 18):<18} {shown(row['name'], _NAME)}")  # fmt: skip
    if len(rows) > top:
        lines.append(f"… and {len(rows) - top} more: --top N, or --export-profile FILE")
    return lines


class BenchReport:
    """Prints a bench as it goes, its `top` slowest layers at the end."""

    def __init__(self, log: Log, top: int) -> None:
        self._log, self._top = log, top
        self._runs: list[Row] = []
        self._profile: dict[str, list[Row]] = {}

    def event(self, event: Mapping[str, Any]) -> None:
        """Take one event of the job."""
        kind = event.get("type")
        if kind == "row":
            self._row(str(event.get("table")), event["row"])
        elif kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self._log.say(level, shown_lines(event.get("text")))
        elif kind == "dropped":
            self._runs, self._profile = [], {}
        elif kind == "result":
            self._finish(event["data"])

    def _row(self, table: str, row: Row) -> None:
        if table == "runs":
            self._runs.append(row)
            batch = f", batch {row['batch']}" if row["batch"] else ""
            self._say(f"=== Performance summary: {row['runner']}{batch} ===", summary_lines(row))
        elif table == "comparisons":
            self._log.say(INFO, shown(row["words"], 600))
        elif table == "profile":
            self._profile.setdefault(str(row["runner"]), []).append(row)

    def _finish(self, result: Row) -> None:
        if len({row["batch"] for row in self._runs}) > 1:
            self._say("=== Throughput by batch size ===", batch_lines(self._runs))
        for name, rows in self._profile.items():
            self._say(f"=== Slowest layers: {name} (of {len(rows)}) ===", layer_lines(rows, self._top))
        if not self._runs:
            for name, seconds in result.get("opening_seconds", {}).items():
                self._log.say(INFO, f"{shown(name, 200)} opened in {seconds:.3g} s; nothing was run")

    def _say(self, title: str, lines: Iterator[str] | list[str]) -> None:
        self._log.say(START, shown(title, 200))
        if self._log.shows(INFO):
            for line in lines:
                self._log.continued(f"    {line}")
