"""The slowest layers as styled text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Line, fit, merge, wrap_runs
from layerwise._tool.tui.state.perf import PerfState, share

Row = Mapping[str, Any]
MS_CELLS, SHARE_CELLS, SO_FAR_CELLS = 9, 6, 6
WIDE = 100
_HOT = 10.0
_TITLES = {"time": "ms", "graph": "#", "op": "op", "layer": "layer", "calls": "calls"}


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
    arrow = ("^" if reverse else "v") if glyphs.ellipsis == "~" else ("▴" if reverse else "▾")

    def name(text: str) -> str:
        return text + arrow if text == _TITLES[sort] else text

    text = f"{name('#'):>{shape.place}} {fit(name('op'), shape.op)} {fit(name('layer'), shape.layer)} "
    text += f"{name('calls'):>{shape.calls}} " if shape.calls else ""
    text += f"{name('ms'):>{MS_CELLS}} {'share':>{SHARE_CELLS}} {fit('', shape.bar)} {'so far':>{SO_FAR_CELLS}}"
    return [(fit(text, cells, keep="start"), "head")]


def row_line(state: PerfState, line: int, cells: int, glyphs: Glyphs) -> Line:
    """One layer, `cells` wide; `so far` is the share of it and of all rows above it."""
    row, shape = state.row_at(line), columns(cells)
    part = share(row)
    text = f"{int(row.get('i') or 0):>{shape.place}} {fit(str(row.get('op') or '?'), shape.op, glyphs.ellipsis)} "
    text += f"{fit(str(row.get('name') or ''), shape.layer, glyphs.ellipsis, keep='end')} "
    text += f"{int(row.get('calls') or 0):>{shape.calls}} " if shape.calls else ""
    text += f"{ms_text(row.get('typical_ms')):>{MS_CELLS}} {part:>{SHARE_CELLS - 1}.1f}% "
    bar = share_bar(part / (state.most or 1.0), shape.bar, glyphs)
    return merge([
        (text, ""), (fit(bar, shape.bar), "warn" if part >= _HOT else "accent"),
        (f" {state.so_far[line]:>{SO_FAR_CELLS - 1}.0f}%", "dim"),
    ])  # fmt: skip


def ms_text(value: object) -> str:
    """Milliseconds to a tenth of a microsecond where that is much, `-` for what is no number."""
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.4f}" if value < 10 else f"{value:.2f}"


def share_bar(part: float, cells: int, glyphs: Glyphs) -> str:
    """A bar that fills `part` (0 to 1) of `cells` cells, at least one where the part is not 0."""
    return glyphs.bars[-1] * max(1 if part > 0 else 0, round(cells * min(1.0, part)))


def head_lines(state: PerfState, cells: int, glyphs: Glyphs) -> list[Line]:
    """What was timed and how fast it is, how far the bench is, and what went wrong, if anything."""
    if not state.job:
        return [[("no bench of this model yet", "strong"), ("   b times it, layer by layer", "dim")], []]
    lines = [_figures(state, cells, glyphs), _standing(state, cells)]
    if state.facts.card is not None and state.rows:
        text = f"{glyphs.bad} {state.facts.card.get('kind', '')}: {state.facts.card.get('summary', '')}"
        lines.append([(fit(text, cells, glyphs.ellipsis, keep="start"), "bad")])
    elif state.comparisons:
        text = str(state.comparisons[-1].get("words", ""))
        lines.append([(fit(text, cells, glyphs.ellipsis, keep="start"), "accent")])
    elif state.facts.warning:
        lines.append([(fit(f"warning: {state.facts.warning}", cells, glyphs.ellipsis, keep="start"), "warn")])
    return lines


def _figures(state: PerfState, cells: int, glyphs: Glyphs) -> Line:
    run = state.run
    if run is None:
        return [(f"bench, job {state.job}", "strong")]
    latency = run.get("latency") or {}
    batch = f", batch {run['batch']}" if run.get("batch") else ""
    name = shown(f"{run.get('runner')}{batch}", 60)
    text = f"  median {ms_text(latency.get('median'))} ms"
    text += "".join(f"  p{key} {ms_text(value)}" for key, value in (latency.get("percentiles") or {}).items())
    text += f"  {sig(run.get('items_per_second'), 3)} {'items' if run.get('batch') else 'runs'}/s"
    room = max(10, cells - len(text))
    return [(fit(name, min(room, len(name)), glyphs.ellipsis, keep="start"), "strong"), (text, "")]


def _standing(state: PerfState, cells: int) -> Line:
    facts = state.facts
    words = {"queued": "waiting for a slot", "": "opening"}
    if facts.state == "running":
        text = f"{facts.done} of {facts.total or '?'} {facts.unit}"
    else:
        text = words.get(facts.state, f"{facts.state}: {len(state.rows)} layers")
    others = len(state.profiles)
    more = f"   runner {list(state.profiles).index(state.runner) + 1} of {others} (n: next)" if others > 1 else ""
    return [(fit(text, max(1, cells - len(more)), keep="start").rstrip(), ""), (more, "dim")]


def detail_lines(row: Row, error: str, cells: int) -> list[Line]:
    """Everything known of a layer. error: what the comparison on view says of its node, "" for nothing. In one role: a
    line is painted at every move of the cursor.
    """
    if not row:
        return []
    node = str(row.get("node") or "none of the model's: the backend made it")
    times = " ".join(f"{ms_text(row.get(f'{name}_ms'))} {name}" for name in ("typical", "median", "mean"))
    where = f" on {row['provider']}" if row.get("provider") else ""
    told = f"{times}{where}, {row.get('calls')} calls"
    facts = [("layer", str(row.get("name"))), ("ms", told)]
    facts += [("node", node)] if node != row.get("name") else []
    facts += [("error", error)] if error else []
    return [
        line for title, text in facts
        for line in wrap_runs([(f" {title:<6}{shown(text, 400)}", "")], cells, indent=7)
    ]  # fmt: skip
