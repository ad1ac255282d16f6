"""The Home screen as text: a row for each model or job, and what is known of the one under the cursor."""

from collections.abc import Sequence
from pathlib import Path

from layerwise._tool.backends.model.record_values import Value
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import Called, counted, shown
from layerwise._tool.surgery.inspect.preview import Preview
from layerwise._tool.tui.presenters.names import TITLE, Names
from layerwise._tool.tui.presenters.numbers import clock_text
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, some, wrap_runs
from layerwise._tool.tui.state.home import HomeRow, HomeState

KIND, WHEN = 8, 13
_LISTED = 4  # inputs and outputs, each


def head_line(state: HomeState, cells: int) -> Line:
    """The folder, and how much was found."""
    if state.searching:
        count = "looking for models …"
    else:
        count = f"{len(state.rows):,} of {state.total:,}{' or more' if state.cut else ''}"
    return [
        (" Open what?  ", "strong"),
        (f"{count}, below ", "dim"),
        (shown(str(state.folder), max(20, cells - 50)), ""),
    ]


def row_line(row: HomeRow, now: float, cells: int, names: Names) -> Line:
    """One thing to open."""
    kind = f"job {row.job}" if row.job else row.kind
    when = clock_text(row.when, now) if row.when else ""
    room = max(10, cells - KIND - WHEN - 2)
    role = {"failed": "bad", "lost": "bad", "waiting": "warn"}.get(row.state, "")
    title = f"{row.state}: {row.title}" if row.state else row.title
    text = names.text(title, room, TITLE if row.kind == "job" else "path")
    return [(fit(kind, KIND), "dim"), (text, role), (f" {when:>{WHEN}}", "dim")]


def empty_lines(state: HomeState) -> list[Line]:
    """What stands in place of the rows where there are none."""
    if state.searching:
        return []
    if state.filter:
        return [[("no row fits: esc shows all", "dim")]]
    return [
        [("no model was opened yet, and none lies below this folder", "")],
        [("Y  the demo: a small transformer against its FP16 form", "")],
        [(":tour  the same, with five steps through it", "")],
        [(":open FILE  any other model (tab completes)", "")],
    ]


def preview_lines(path: Path, seen: Preview, cells: int, glyphs: Glyphs) -> list[Line]:
    """What a file holds: size, versions, inputs, outputs; or why it cannot be opened."""
    head: Line = [(shown(path.name, max(20, cells - 40)), "strong"), (f"  {size_text(seen.size)}", "")]
    if seen.problem:
        return [head, *wrap_runs([(f"{glyphs.bad} ", "bad"), (shown(seen.problem, 400), "bad")], cells, indent=2)]
    if seen.note:
        return [head, [(seen.note, "")]]
    more = "" if seen.whole else " or more"
    head.append((f"  {counted(seen.nodes, 'node')}{more}", ""))
    head.append((f"  opset {seen.opset}" if seen.opset else "", ""))
    head.append((f"  {shown(seen.producer, 30)}" if seen.producer else "", "dim"))
    lines = [head]
    lines += _ends(seen, cells, glyphs)
    if seen.missing:
        lines += wrap_runs([("weights are missing: ", "bad"), (some(map(_name, seen.missing), 3), "bad")], cells, 2)
    return lines


def _name(text: str) -> str:
    return shown(text, 80)


def _ends(seen: Preview, cells: int, glyphs: Glyphs) -> list[Line]:
    """Inputs and outputs, their names shortened together."""
    names = Names(glyphs)
    called = names.inline(max(8, min(40, cells - 30)))

    def draw() -> list[Line]:
        inputs = _values("in ", seen.inputs, seen.more_inputs, called)
        return [*inputs, *_values("out", seen.outputs, seen.more_outputs, called)]

    return names.told(draw)


def _values(word: str, values: Sequence[Value], more: int, called: Called) -> list[Line]:
    lines: list[Line] = []
    for number, value in enumerate(values[:_LISTED]):
        told = f"{value.kind or '?'} {_shape(value)}"
        name: Line = [(f"{word if not number else '':<3}  ", "dim"), (f"{called(value.name)}  ", "")]
        lines.append([*name, (shown(told, 80), "dim")])
    left = len(values) + more - _LISTED
    if left > 0:
        lines.append([(f"     and {left:,} more", "dim")])
    return lines


def _shape(value: Value) -> str:
    if value.shape is None:
        return "of unknown shape" if value.kind else ""
    return "[" + ", ".join("?" if dim is None or dim == "" else str(dim) for dim in value.shape) + "]"


def job_lines(row: HomeRow, command: str, cells: int) -> list[Line]:
    """What a job was asked for."""
    lines = wrap_runs([(f"job {row.job}  ", "dim"), (shown(row.title, 300), "strong")], cells, indent=2)
    lines += wrap_runs([("$ ", "dim"), (command, "")], cells, indent=2)[:3] if command else []
    where = "enter opens its model and its table" if row.path is not None else "enter shows it"
    return [*lines, [(where, "dim")]]
