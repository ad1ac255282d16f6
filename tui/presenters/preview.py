"""A change before it is made, as text."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import one_line, shown
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import short_dtype
from layerwise._tool.tui.presenters.text import Glyphs, Line, clip, fit, some, spread, width, wrap_runs

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.surgery.graph.delta import Delta
    from layerwise._tool.surgery.graph.overlay import Overlay
    from layerwise._tool.tui.state.surgery import Check, Preview

WORD = 9
_NAMED, _KINDS, _TYPES, _WIDE, _ROWS, _CELLS = 3, 6, 3, 100, 2, 48


def preview_lines(preview: "Preview", check: "Check | None", cells: int, glyphs: Glyphs) -> list[Line]:
    """Whether the result is sound; what is removed, added and changed, which types and outputs, what it weighs."""
    checked = wrap_runs([(f" {'check':<{WORD}}", "dim"), *_checked(check)], cells, WORD + 1)
    facts = [*_facts(preview, glyphs), ("types", _types(check, cells, glyphs))]
    return [*_head(preview, cells), *checked, *_lines(facts, cells, glyphs)]


def step_lines(preview: "Preview", cells: int, glyphs: Glyphs) -> list[Line]:
    """What a change that was made changed."""
    return _lines(_facts(preview, glyphs), cells, glyphs)


def _facts(preview: "Preview", glyphs: Glyphs) -> list[tuple[str, Line]]:
    delta = preview.delta
    return [*_nodes(preview, glyphs), *_ends(delta), ("affects", _affected(preview)), ("weights", _weights(delta))]


def _lines(facts: Iterable[tuple[str, Line]], cells: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = []
    for word, line in facts:
        wrapped = wrap_runs([(f" {word:<{WORD}}", "dim"), *line], cells, WORD + 1)
        lines += wrapped[:_ROWS]
        if len(wrapped) > _ROWS:
            lines[-1] = [*clip(lines[-1], cells - 2), (f" {glyphs.ellipsis}", "dim")]
    return lines


def _head(preview: "Preview", cells: int) -> list[Line]:
    count = f"{len(preview.edits):,} edits: " if len(preview.edits) > 1 else ""
    told: Line = [(f" {count}{preview.edits[0].describe()}", "strong")]
    keys: Line = [("enter applies  esc leaves it ", "key")]
    if width(told) + width(keys) < cells:
        return [spread(told, keys, cells)]
    return [*wrap_runs(told, cells, 3)[:_ROWS], spread([], keys, cells)]


def _nodes(preview: "Preview", glyphs: Glyphs) -> Iterable[tuple[str, Line]]:
    """A line each for what goes, comes and changes."""
    delta, names = preview.delta, Names(glyphs)
    rows = [("-", "removed", delta.removed, preview.before, "bad"), ("+", "added", delta.added, preview.after, "good"),
            ("~", "changed", delta.changed, preview.after, "warn")]  # fmt: skip

    def texts() -> list[str]:
        return [
            (_changes if sign == "~" else _named)(preview, graph, nodes, names, glyphs)
            for sign, _, nodes, graph, _ in rows
        ]

    names.look(texts)
    for (sign, word, nodes, _, role), text in zip(rows, texts(), strict=True):
        if nodes:
            yield word, [(f"{sign}{len(nodes):,}  ", role), (text, "")]
    if not (delta.removed or delta.added or delta.changed):
        yield "nodes", [("the same", "")]


def _named(preview: "Preview", graph: "Overlay", nodes: Sequence[int], names: Names, glyphs: Glyphs) -> str:
    """Operator and name of a few, operators of many."""
    if len(nodes) <= _NAMED:
        return ", ".join(f"{shown(graph.node_op(node), 40)} {_label(graph, node, names)}" for node in nodes)
    ops = Counter(graph.node_op(node) for node in nodes).most_common(_KINDS + 1)
    text = ", ".join(f"{count:,} {shown(op, 40)}" for op, count in ops[:_KINDS])
    return f"{text}, {glyphs.ellipsis}" if len(ops) > _KINDS else text


def _label(graph: "Overlay", node: int, names: Names) -> str:
    outputs = [graph.tensor_name(tensor) for tensor in graph.node_outputs(node) if tensor >= 0]
    return names.text(graph.node_name(node) or next(iter(outputs), "(no name)"), _CELLS).rstrip()


def _changes(preview: "Preview", graph: "Overlay", nodes: Sequence[int], names: Names, glyphs: Glyphs) -> str:
    if len(nodes) > _NAMED:
        return _named(preview, graph, nodes, names, glyphs)
    before = preview.before
    return "; ".join(f"{_label(graph, node, names)}: {', '.join(changes(before, node, graph, node))}" for node in nodes)


def changes(before: "GraphIndex", node: int, after: "GraphIndex", other: int) -> list[str]:
    """How two nodes differ, each in a few words."""
    found = []
    for one, two in (
        (before.node_op(node), after.node_op(other)), (before.node_name(node), after.node_name(other)),
        (before.node_domain(node), after.node_domain(other)),
    ):  # fmt: skip
        if one != two:
            found.append(f"{shown(one, 40) or 'none'} becomes {shown(two, 40) or 'none'}")
    found += _slots("reads", before, before.node_inputs(node), after, after.node_inputs(other))
    found += _slots("makes", before, before.node_outputs(node), after, after.node_outputs(other))
    was, now = dict(before.attributes(node)), dict(after.attributes(other))
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            found.append(f"{name} {was.get(name, 'none')[:40]} becomes {now.get(name, 'none')[:40]}")
    return found or ["something inside it"]


def _slots(word: str, before: "GraphIndex", was: list[int], after: "GraphIndex", now: list[int]) -> list[str]:
    one = ["" if tensor < 0 else before.tensor_name(tensor) for tensor in was]
    two = ["" if tensor < 0 else after.tensor_name(tensor) for tensor in now]
    new = [shown(name, 60) for place, name in enumerate(two) if name and one[place : place + 1] != [name]]
    if new:
        return [f"{word} {', '.join(new[:_NAMED])}"]
    return [f"{word} {len(two)} instead of {len(one)}"] if len(one) != len(two) else []


def _ends(delta: "Delta") -> Iterable[tuple[str, Line]]:
    """Graph inputs and outputs that come and go; weights with other values."""
    for word, (was, now) in (("inputs", delta.inputs), ("outputs", delta.outputs)):
        gone, new = [name for name in was if name not in now], [name for name in now if name not in was]
        for sign, names, role in (("-", gone, "bad"), ("+", new, "good")):
            if names:
                yield word, [(f"{sign}{len(names):,}  ", role), (_list(names), "")]
    if delta.values:
        yield "values", [(f"~{len(delta.values):,}  ", "warn"), (_list(delta.values), "")]


def _list(names: Sequence[str]) -> str:
    return some((shown(name, 60) for name in names), _NAMED)


def _types(check: "Check | None", cells: int, glyphs: Glyphs) -> Line:
    if check is None:
        return [("being inferred", "dim"), (f" {glyphs.ellipsis}", "dim")]
    if check.failed:
        return [("not known", "dim")]
    if not check.types:
        return [("no shape and no dtype changes", "")]
    most = _TYPES if cells >= _WIDE else 1
    texts = [
        f"{fit(name, 40, glyphs.ellipsis).rstrip()} {_short(was)} becomes {_short(now)}"
        for name, was, now in check.types[:most]
    ]
    more = f" and {len(check.types) - most:,} more" if len(check.types) > most else ""
    return [(f"~{len(check.types):,}  ", "warn"), ("; ".join(texts) + more, "")]


def _short(kind: str) -> str:
    """`f32 1x64` for `float32 1x64`."""
    dtype, _, shape = kind.partition(" ")
    return f"{short_dtype(dtype)} {shape}"


def _affected(preview: "Preview") -> Line:
    total, names = len(preview.delta.outputs[1]), preview.affected
    if names is None:
        return [("being followed to the outputs", "dim")]
    if not names:
        return [("no output", "")]
    return [(f"{len(names):,} of {total:,} outputs  ", "accent"), (_list(names), "")]


def _weights(delta: "Delta") -> Line:
    was, now = delta.weights
    if was == now:
        return [(f"{size_text(now)}, as before", "")]
    return [(f"{size_text(was)} becomes {size_text(now)}", "warn" if now > was else "good")]


def _checked(check: "Check | None") -> Line:
    if check is None:
        return [("onnx.checker and shape inference are looking at it", "dim")]
    if check.failed:
        return [("could not be checked: ", "warn"), (shown(one_line(check.failed), 300), "")]
    if not check.problems:
        return [("onnx.checker and shape inference accept it", "good")]
    first = shown(one_line(check.problems[0]), 300)
    first += f" (and {len(check.problems) - 1:,} more)" if len(check.problems) > 1 else ""
    return [("broken: ", "bad"), (first, ""), ("  enter keeps it as work in progress", "key")]
