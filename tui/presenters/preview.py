"""A change before it is made, as text."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import Called, in_full, one_line, shown
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import short_dtype
from layerwise._tool.tui.presenters.text import Glyphs, Line, clip, spread, width, wrap_runs

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.surgery.graph.delta import Delta
    from layerwise._tool.surgery.graph.overlay import Overlay
    from layerwise._tool.tui.state.surgery import Check, Preview

WORD = 9
_NAMED, _KINDS, _TYPES, _WIDE, _ROWS, _HEAD, _CELLS = 3, 6, 3, 100, 2, 4, 48


def preview_lines(preview: "Preview", check: "Check | None", cells: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Whether the result is sound; what is removed, added and changed, which types and outputs, what it weighs.

    rows: where more lines than that would be needed, each fact has one.
    """
    checked = wrap_runs([(f" {'check':<{WORD}}", "dim"), *_checked(check)], cells, WORD + 1)

    def told(called: Called) -> list[Line]:
        facts = [*_facts(preview, called, glyphs), ("types", _types(check, cells, called, glyphs))]
        head = [*_head(preview, cells, called), *checked]
        lines = _lines(facts, cells, glyphs)
        return [*head, *(lines if len(head) + len(lines) <= rows else _lines(facts, cells, glyphs, 1))]

    return _told(told, glyphs)


def step_lines(preview: "Preview", cells: int, glyphs: Glyphs) -> list[Line]:
    """What a change that was made changed."""
    return _told(lambda called: _lines(_facts(preview, called, glyphs), cells, glyphs), glyphs)


def _told(draw: Callable[[Called], list[Line]], glyphs: Glyphs) -> list[Line]:
    """Lines whose names are shortened together, so that different ones stay different."""
    names = Names(glyphs)
    return names.told(lambda: draw(names.inline(_CELLS)))


def _facts(preview: "Preview", called: Called, glyphs: Glyphs) -> list[tuple[str, Line]]:
    nodes, ends = _nodes(preview, called, glyphs), _ends(preview.delta, called)
    return [*nodes, *ends, ("affects", _affected(preview, called)), ("weights", _weights(preview.delta))]


def _lines(facts: Iterable[tuple[str, Line]], cells: int, glyphs: Glyphs, most: int = _ROWS) -> list[Line]:
    lines: list[Line] = []
    for word, line in facts:
        wrapped = wrap_runs([(f" {word:<{WORD}}", "dim"), *line], cells, WORD + 1)
        lines += wrapped[:most]
        if len(wrapped) > most:
            lines[-1] = [*clip(lines[-1], cells - 2), (f" {glyphs.ellipsis}", "dim")]
    return lines


def _head(preview: "Preview", cells: int, called: Called) -> list[Line]:
    count = f"{len(preview.edits):,} edits: " if len(preview.edits) > 1 else ""
    told: Line = [(f" {count}{preview.edits[0].describe(called)}", "strong")]
    keys: Line = [("enter applies  esc leaves it ", "key")]
    if width(told) + width(keys) < cells:
        return [spread(told, keys, cells)]
    return [*wrap_runs(told, cells, 3)[:_HEAD], spread([], keys, cells)]


def _nodes(preview: "Preview", called: Called, glyphs: Glyphs) -> Iterable[tuple[str, Line]]:
    """A line each for what goes, comes and changes."""
    delta = preview.delta
    rows = [("-", "removed", delta.removed, preview.before, "bad"), ("+", "added", delta.added, preview.after, "good"),
            ("~", "changed", delta.changed, preview.after, "warn")]  # fmt: skip
    for sign, word, nodes, graph, role in rows:
        if nodes:
            text = (_changes if sign == "~" else _named)(preview, graph, nodes, called, glyphs)
            yield word, [(f"{sign}{len(nodes):,}  ", role), (text, "")]
    if not (delta.removed or delta.added or delta.changed):
        yield "nodes", [("the same", "")]


def _named(preview: "Preview", graph: "Overlay", nodes: Sequence[int], called: Called, glyphs: Glyphs) -> str:
    """Operator and name of a few, operators of many."""
    if len(nodes) <= _NAMED:
        return ", ".join(f"{shown(graph.node_op(node), 40)} {_label(graph, node, called)}" for node in nodes)
    ops = Counter(graph.node_op(node) for node in nodes).most_common(_KINDS + 1)
    text = ", ".join(f"{count:,} {shown(op, 40)}" for op, count in ops[:_KINDS])
    return f"{text}, {glyphs.ellipsis}" if len(ops) > _KINDS else text


def _label(graph: "Overlay", node: int, called: Called) -> str:
    outputs = [graph.tensor_name(tensor) for tensor in graph.node_outputs(node) if tensor >= 0]
    return called(graph.node_name(node) or next(iter(outputs), "(no name)"))


def _changes(preview: "Preview", graph: "Overlay", nodes: Sequence[int], called: Called, glyphs: Glyphs) -> str:
    if len(nodes) > _NAMED:
        return _named(preview, graph, nodes, called, glyphs)
    before = preview.before
    return "; ".join(
        f"{_label(graph, node, called)}: {', '.join(changes(before, node, graph, node, called))}" for node in nodes
    )


def changes(
    before: "GraphIndex", node: int, after: "GraphIndex", other: int, called: Called = in_full
) -> list[str]:  # fmt: skip
    """How two nodes differ, each in a few words. called: how names are shown."""
    found = []
    for one, two in (
        (before.node_op(node), after.node_op(other)), (before.node_name(node), after.node_name(other)),
        (before.node_domain(node), after.node_domain(other)),
    ):  # fmt: skip
        if one != two:
            found.append(f"{called(one) or 'none'} becomes {called(two) or 'none'}")
    reads = _names(before, before.node_inputs(node)), _names(after, after.node_inputs(other))
    makes = _names(before, before.node_outputs(node)), _names(after, after.node_outputs(other))
    found += [*_slots("reads", *reads, called), *_slots("makes", *makes, called)]
    was, now = dict(before.attributes(node)), dict(after.attributes(other))
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            found.append(f"{name} {called(was.get(name, 'none'))} becomes {called(now.get(name, 'none'))}")
    return found or ["something inside it"]


def _names(graph: "GraphIndex", tensors: Sequence[int]) -> list[str]:
    return ["" if tensor < 0 else graph.tensor_name(tensor) for tensor in tensors]


def _slots(word: str, was: list[str], now: list[str], called: Called) -> list[str]:
    new = [name for place, name in enumerate(now) if name and was[place : place + 1] != [name]]
    if new:
        return [f"{word} {', '.join(map(called, new[:_NAMED]))}"]
    return [f"{word} {len(now)} instead of {len(was)}"] if len(was) != len(now) else []


def _ends(delta: "Delta", called: Called) -> Iterable[tuple[str, Line]]:
    """Graph inputs and outputs that come and go; weights with other values."""
    for word, (was, now) in (("inputs", delta.inputs), ("outputs", delta.outputs)):
        gone, new = [name for name in was if name not in now], [name for name in now if name not in was]
        for sign, names, role in (("-", gone, "bad"), ("+", new, "good")):
            if names:
                yield word, [(f"{sign}{len(names):,}  ", role), (_list(names, called), "")]
    if delta.values:
        yield "values", [(f"~{len(delta.values):,}  ", "warn"), (_list(delta.values, called), "")]


def _list(names: Sequence[str], called: Called) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(called, names[:_NAMED])) + more


def _types(check: "Check | None", cells: int, called: Called, glyphs: Glyphs) -> Line:
    if check is None:
        return [("being inferred", "dim"), (f" {glyphs.ellipsis}", "dim")]
    if check.failed:
        return [("not known", "dim")]
    if not check.types:
        return [("no shape and no dtype changes", "")]
    most = _TYPES if cells >= _WIDE else 1
    texts = [f"{called(name)} {_short(was)} becomes {_short(now)}" for name, was, now in check.types[:most]]
    more = f" and {len(check.types) - most:,} more" if len(check.types) > most else ""
    return [(f"~{len(check.types):,}  ", "warn"), ("; ".join(texts) + more, "")]


def _short(kind: str) -> str:
    """`f32 1x64` for `float32 1x64`."""
    dtype, _, shape = kind.partition(" ")
    return f"{short_dtype(dtype)} {shape}"


def _affected(preview: "Preview", called: Called) -> Line:
    total, names = len(preview.delta.outputs[1]), preview.affected
    if names is None:
        return [("being followed to the outputs", "dim")]
    if not names:
        return [("no output", "")]
    return [(f"{len(names):,} of {total:,} outputs  ", "accent"), (_list(names, called), "")]


def _weights(delta: "Delta") -> Line:
    was, now = delta.weights
    if was == now:
        return [(f"{size_text(now)}, as before", "")]
    return [(f"{size_text(was)} becomes {size_text(now)}", "warn" if now > was else "good")]


def _checked(check: "Check | None") -> Line:
    if check is None:
        return [("onnx.checker and shape inference are looking at it", "dim")]
    if check.failed:
        return [("could not be checked: ", "warn"), (shown(one_line(check.failed), 1000), "")]
    if not check.problems:
        return [("onnx.checker and shape inference accept it", "good")]
    first = shown(one_line(check.problems[0]), 1000)
    first += f" (and {len(check.problems) - 1:,} more)" if len(check.problems) > 1 else ""
    return [("broken: ", "bad"), (first, ""), ("  enter keeps it as work in progress", "key")]
