"""The last sentence of a bench: what was found, how sure that is, and what to do next."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.rows import BenchResult, ProfileRow


def conclusion(result: BenchResult, layers: Sequence[ProfileRow], profiled: bool) -> str:
    """Return the sentence. layers: those that were timed. profiled: whether that was asked for."""
    if not result.runs:
        return "Nothing was run: the runners were opened only."
    found = [each.words for each in result.comparisons] or [_time(result)]
    return " ".join([*(shown(text, 300) for text in found[:3]), _next(result, layers, profiled)]).strip()


def _time(result: BenchResult) -> str:
    if len(result.runs) > 1:
        best = max(result.runs, key=lambda row: row.items_per_second)
        batch = f" at batch {best.batch}" if best.batch else ""
        return f"{best.runner}{batch} gets most through: {best.items_per_second:.4g} a second."
    row = result.runs[0]
    last = next(reversed(row.latency.percentiles.items()), None)
    tail = f", {last[0]} % of them within {last[1]:.4g} ms" if last else ""
    return f"{row.runner} takes {row.latency.median:.4g} ms, the median of {row.runs} runs{tail}."


def _next(result: BenchResult, layers: Sequence[ProfileRow], profiled: bool) -> str:
    if layers:
        slowest = max(layers, key=lambda row: row.percent)
        count = f"all {len(layers):,} layers" if len(layers) > 1 else "the only layer"
        label = f"{shown(slowest.op, 40)} {shown(slowest.node or slowest.name, 80)}".strip()
        return f"The slowest layer is {label}: {slowest.percent:.0f} % of the time of {count}."
    if any("too few" in each.verdict for each in result.comparisons):
        return "More of them (--iterations, --duration) tell."
    return "No layer could be timed: a warning says why." if profiled else "`--profile` times each layer."
