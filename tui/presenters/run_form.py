"""The Run form as styled text."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from layerwise._tool.backends.shell import shell_word
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, wrap_runs
from layerwise._tool.tui.state.mark_cost import Cost
from layerwise._tool.tui.state.run_fields import Field
from layerwise._tool.tui.state.run_form import PRESETS, RunForm, preset

SECTION_CELLS = 9
LABEL_CELLS = 22
VALUE_CELLS = 18
BELOW = 5
"""Lines below the form."""


def field_line(
    form: RunForm, field: Field, problems: Mapping[str, str], cells: int, names: Names, glyphs: Glyphs
) -> Line:  # fmt: skip
    """One field: section, label, value, and what is wrong or what may stand there."""
    value, role = _value(form, field)
    if field.options:
        value = f"{glyphs.here_right} {value} {glyphs.here_left}"
    problem = problems.get(field.key, "")
    note, note_role = (f"{glyphs.bad} {problem}", "bad") if problem else (_hint(form, field), "dim")
    label = names.text(field.label, LABEL_CELLS) if field.label else ""
    room = max(8, cells - SECTION_CELLS - len(label) - 1)
    taken = min(room, max(VALUE_CELLS, cell_len(shown(value))))
    value = fit(value, taken, glyphs.ellipsis, keep="start")
    left = max(0, room - taken)
    return merge([
        (fit(field.section, SECTION_CELLS), "accent"), (label, ""), (value, "bad" if problem else role),
        (" ", ""), (fit(note, left, glyphs.ellipsis, keep="start"), note_role),
    ])  # fmt: skip


def _hint(form: RunForm, field: Field) -> str:
    """What may be typed, until something is."""
    return "" if not field.options and field.key != "preset" and field.text(form) else field.hint


def _value(form: RunForm, field: Field) -> tuple[str, str]:
    if field.key == "preset":
        return (preset_text(form.preset) if form.preset else "own settings"), "strong"
    value = field.text(form)
    return (value, "strong") if value else (field.empty or "(nothing yet)", "dim")


def preset_text(name: str) -> str:
    """A preset in one line. StopIteration for a name that is none."""
    found = preset(name)
    return f"{name}: {found.what}" + ("  [needs TensorRT]" if found.tensorrt else "")


def preset_lines() -> list[Line]:
    """The presets as rows to choose from."""
    return [
        merge([(f"{p.name:<20}", "strong"), (p.what, ""), ("  needs TensorRT" if p.tensorrt else "", "warn")])
        for p in PRESETS
    ]


def cost_line(cost: Cost | None, sides: int, iterations: int) -> Line:
    """What the marked tensors cost, in tensors and bytes."""
    if cost is None:
        return [("cost of marking: the graph is not indexed yet", "dim")]
    line: Line = [("marking ", "dim"), (counted(cost.tensors, "tensor"), "strong"), (", ", "dim")]
    line.append((f"{size_text(cost.nbytes)} a side", "strong"))
    if iterations > 1:
        line.append((f" and iteration, {iterations} iterations", ""))
    line.append((f" ({counted(sides, 'side')}), streamed", "dim"))
    if cost.unsized:
        line.append((f"; {cost.unsized:,} of unknown size", "warn"))
    return line


def command_lines(words: Sequence[str], cells: int) -> list[Line]:
    """The equivalent command line, wrapped."""
    lines: list[Line] = []
    text = "$"
    for word in map(shell_word, words):
        if len(text) + 1 + len(word) > cells and len(text) > 3:
            lines += wrap_runs([(shown(text), "")], cells, indent=4)
            text = "   "
        text += " " + word
    return [*lines, *wrap_runs([(shown(text), "")], cells, indent=4)]


def input_lines(field: Field, cells: int) -> list[Line]:
    """An input's type and shape, and why it gets what is planned, wrapped."""
    return wrap_runs([(f"{field.label}: {field.hint}", "")], cells, indent=2)


def problem_lines(
    problems: Mapping[str, str], fields: Sequence[Field], here: str, size: tuple[int, int], glyphs: Glyphs
) -> list[Line]:  # fmt: skip
    """What must be mended before a run, that of the field `here` first; what has no room (cells, lines) is counted."""
    labels, lines = _labels(fields), list[Line]()
    ordered = sorted(problems, key=lambda key: key != here)
    for place, key in enumerate(ordered):
        name = f"{labels[key]}: " if labels.get(key) else ""
        told = [(f"{glyphs.bad} ", "bad"), (name, ""), (shown(problems[key]), "bad")]
        more = wrap_runs(told, size[0], indent=2)
        if lines and len(lines) + len(more) > size[1] - (place < len(ordered) - 1):
            return [*lines, [(f"  and {len(ordered) - place} more", "bad")]]
        lines += more
    return lines


def _labels(fields: Sequence[Field]) -> dict[str, str]:
    """What the fields are called where they stand alone: with their side, where they are of one."""
    labels, section = {}, ""
    for field in fields:
        section = field.section or section
        side = section if field.key.startswith("side.") else field.section
        labels[field.key] = f"{side} {field.label}".strip()
    return labels
