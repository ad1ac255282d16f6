"""The text of `--report`, in Polygraphy's lines, and a line for each combination below."""

from collections.abc import Iterator, Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.autotune.rows import CombinationRow
from layerwise._tool.surgery.plugins.patterns import Instance, Match

_TITLE = "TRT Plugin Operator Auto-tuning Report"


def performance(row: CombinationRow) -> str:
    """Return the figures of a combination that was timed, as Polygraphy words them."""
    milliseconds = row.milliseconds or 0.0
    rate = 1000 / milliseconds if milliseconds else 0.0
    memory = (row.memory or 0) / (1 << 20)
    return f"Latency: {milliseconds:.2f}ms, Throughput: {rate:.2f}fps, Memory: {memory:.2f}MB"


def report_text(rows: Sequence[CombinationRow], best: Sequence[tuple[Match, Instance]], seconds: float) -> str:
    """Return the report of a search of `seconds`; `rows` starts with the model itself, `best` is what is replaced."""
    return "\n".join([*_figures(rows, seconds), *_strategy(best), "", "Combinations:", *map(_line, rows)]) + "\n"


def _figures(rows: Sequence[CombinationRow], seconds: float) -> Iterator[str]:
    yield from (_TITLE, "=" * 50, "")
    yield f"Optimization Time: {seconds:.2f}s"
    yield f"Total Combinations Tested: {len(rows)}"
    yield f"Number of Engine Builds: {len(rows)}"
    yield f"Total Compilation Time: {sum(row.build_seconds for row in rows):.2f}s"
    yield from ("", "Baseline Performance:", f"  {performance(rows[0])}")
    yield from ("", "Best Performance:", f"  {performance([row for row in rows if row.best][-1])}")


def _strategy(best: Sequence[tuple[Match, Instance]]) -> Iterator[str]:
    yield from ("", f"Best Strategy ({len(best)} replacements):")
    for number, (match, instance) in enumerate(best, 1):
        yield f"  {number}. {shown(match.op, 200)} ({shown(match.name, 200)})"
        yield f"     Inputs: {shown(', '.join(instance.inputs), 2000) or 'N/A'}"
        yield f"     Outputs: {shown(', '.join(instance.outputs), 2000)}"
        if instance.attributes:
            yield f"     Attributes: {shown(str(instance.attributes), 2000)}"


def _line(row: CombinationRow) -> str:
    names = shown(", ".join(row.replacements), 2000) or "none"
    return f"  {row.n}. {names}: {shown(row.note, 500) if row.milliseconds is None else performance(row)}"
