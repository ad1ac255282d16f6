"""The slowest layers as styled text."""

from dataclasses import dataclass

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import share_bar, sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, sentence_lines, sort_sign, wrap_runs
from layerwise._tool.tui.state.perf import PerfState

MS_CELLS, SHARE_CELLS, SO_FAR_CELLS = 9, 6, 6
WIDE = 100
_HOT = 10.0
TITLES = {"time": "ms", "graph": "#", "op": "op", "layer": "layer", "calls": "calls"}
"""Headings of the columns to sort by."""


@dataclass(frozen=True)
class Columns:
    """Cells of the columns; calls: 0 where it is not shown."""

    place: int
    op: int
    layer: int
    calls: int
    bar: int


def columns(cells: int) -> Columns:
    """The columns of a list `cells` wide."""
    place, op, calls, bar = (5, 18, 6, 24) if cells >= WIDE else (5, 12, 0, 12)
    taken = place + op + (calls + 1 if calls else 0) + bar + MS_CELLS + SHARE_CELLS + SO_FAR_CELLS + 6
    return Columns(place, op, max(8, cells - taken), calls, bar)


def heading(cells: int, sort: str, reverse: bool, glyphs: Glyphs) -> Line:
    """The column names; the sorted column carries an arrow."""
    shape = columns(cells)
    arrow = sort_sign(reverse, glyphs)

    def name(text: str) -> str:
        return text + arrow if text == TITLES[sort] else text

    text = f"{name('#'):>{shape.place}} {fit(name('op'), shape.op)} {fit(name('layer'), shape.layer)} "
    text += f"{name('calls'):>{shape.calls}} " if shape.calls else ""
    text += f"{name('ms'):>{MS_CELLS}} {'share':>{SHARE_CELLS}} {fit('', shape.bar)} {'so far':>{SO_FAR_CELLS}}"
    return [(fit(text, cells, keep="start"), "head")]


def row_line(state: PerfState, line: int, cells: int, names: Names, glyphs: Glyphs) -> Line:
    """One layer, `cells` wide; `so far` is the share of it and of all rows above it."""
    row, shape = state.rows[state.order[line]], columns(cells)
    part = row.percent
    text = f"{row.i:>{shape.place}} {names.text(row.op or '?', shape.op, 'op')} "
    text += f"{names.text(row.name, shape.layer, 'layer')} "
    text += f"{row.calls:>{shape.calls}} " if shape.calls else ""
    text += f"{ms_text(row.typical_ms):>{MS_CELLS}} {part:>{SHARE_CELLS - 1}.1f}% "
    bar = share_bar(part / (state.most or 1.0), shape.bar, glyphs)
    return merge([
        (text, ""), (fit(bar, shape.bar), "warn" if part >= _HOT else "accent"),
        (f" {state.so_far[line]:>{SO_FAR_CELLS - 1}.0f}%", "dim"),
    ])  # fmt: skip


def ms_text(value: float) -> str:
    """Milliseconds to a tenth of a microsecond where that is much."""
    return f"{value:.4f}" if value < 10 else f"{value:.2f}"


def head_lines(state: PerfState, cells: int, glyphs: Glyphs) -> list[Line]:
    """What was timed and how fast it is, how far the bench is, and what went wrong, if anything."""
    if not state.job:
        return [[("no bench of this model yet", "strong"), ("   r times it, layer by layer", "dim")], []]
    lines = [_figures(state, cells, glyphs), _standing(state, cells)]
    if state.facts.card is not None and state.rows:
        text = f"{glyphs.bad} {state.facts.card.get('kind', '')}: {state.facts.card.get('summary', '')}"
        lines += sentence_lines(text, "bad", cells, glyphs)
    elif state.facts.result.conclusion:
        lines += sentence_lines(state.facts.result.conclusion, "accent", cells, glyphs)
    elif state.comparisons:
        lines += sentence_lines(state.comparisons[-1].words, "accent", cells, glyphs)
    elif state.facts.warning:
        lines += sentence_lines(f"warning: {state.facts.warning}", "warn", cells, glyphs)
    return lines


def _figures(state: PerfState, cells: int, glyphs: Glyphs) -> Line:
    run, of = state.run, f"{shown(state.other, 40)}: " if state.other else ""
    if run is None:
        return [(f"{of}bench, job {state.job}", "strong")]
    name = shown(f"{of}{run.runner}{f', batch {run.batch}' if run.batch else ''}", 60)
    text = f"  median {ms_text(run.latency.median)} ms"
    text += "".join(f"  p{key} {ms_text(value)}" for key, value in run.latency.percentiles.items())
    text += f"  {sig(run.items_per_second, 3)} {'items' if run.batch else 'runs'}/s"
    room = max(10, cells - len(text))
    return [(fit(name, min(room, len(name)), glyphs.ellipsis, keep="start"), "strong"), (text, "")]


def _standing(state: PerfState, cells: int) -> Line:
    facts = state.facts
    words = {"queued": "waiting for a slot", "": "opening"}
    if facts.state == "running":
        text = f"{facts.done} of {facts.total or '?'} {f'{facts.unit} {facts.text}'.strip()}"
    else:
        text = words.get(facts.state, f"{facts.state}: {counted(len(state.rows), 'layer')}")
    others = len(state.profiles)
    more = f"   runner {list(state.profiles).index(state.runner) + 1} of {others} (; next)" if others > 1 else ""
    return [(fit(text, max(1, cells - len(more)), keep="start").rstrip(), ""), (more, "dim")]


def detail_lines(row: ProfileRow, error: str, cells: int) -> list[Line]:
    """Everything known of a layer. error: what the comparison on view says of its node, "" for nothing. In one role: a
    line is painted at every move of the cursor.
    """
    node = row.node or "none of the model's: the backend made it"
    times = f"{ms_text(row.typical_ms)} typical {ms_text(row.median_ms)} median {ms_text(row.mean_ms)} mean"
    where = f" on {row.provider}" if row.provider else ""
    facts = [("layer", row.name), ("ms", f"{times}{where}, {row.calls} calls")]
    facts += [("node", node)] if node != row.name else []
    facts += [("error", error)] if error else []
    return [
        line for title, text in facts
        for line in wrap_runs([(f" {title:<6}{shown(text, 400)}", "")], cells, indent=7)
    ]  # fmt: skip
