"""Everything about one node, as the lines of the detail pane."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import in_full, shown
from layerwise._tool.tui.presenters.around import neighbourhood
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import index_text, sig, tensor_type
from layerwise._tool.tui.presenters.source import origin_lines
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, wrap_runs
from layerwise._tool.tui.presenters.verdicts import MEANINGS, error_word

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.session import NodeError

MOST_TENSORS = 64
NAME_LINES = 3


class NodeDetail:
    """Presents nodes of one index for a pane of `cells` cells.

    marks: marked tensors. statistics: tensor name -> numbers that a worker has brought.
    """

    def __init__(self, index: "GraphIndex", cells: int, glyphs: Glyphs, marks: set[str],
                 statistics: Mapping[str, dict[str, Any]]) -> None:  # fmt: skip
        self._index = index
        self._cells = cells
        self._glyphs = glyphs
        self._marks = marks
        self._statistics = statistics
        self._names = Names(glyphs)

    def lines(self, node: int, error: "NodeError | None" = None, neighbours: bool = True) -> list[Line]:
        """Name, place, error, inputs, outputs, neighbourhood (if asked for), attributes, bodies, statistics."""
        return self._names.told(lambda: self._lines(node, error, neighbours))

    def _lines(self, node: int, error: "NodeError | None", neighbours: bool) -> list[Line]:
        sections: list[list[Line]] = [
            self._head(node), self._error(error), self._tensors(node),
            [[]], [*neighbourhood(self._index, node, self._cells, self._glyphs), []] if neighbours else [],
            self._attributes(node), self._bodies(node), self._weights(node),
        ]  # fmt: skip
        return [line for section in sections for line in section]

    def _head(self, node: int) -> list[Line]:
        index = self._index
        name = in_full(index.node_name(node)) or "(no name)"
        lines = [[(f"{shown(index.node_op(node), 60)} ", "strong"), (f"#{node}", "dim")]]
        lines += wrap_runs([(name, "")], self._cells, 2)
        domain = index.node_domain(node)
        if domain:
            lines.append([(f"domain {shown(domain, 60)}", "dim")])
        scope = index.node_scope(node)
        if scope:
            lines.append([(f"in {self._scope_text(scope)}", "dim")])
        modules = index.modules() if index.meta.get("noted") else None
        return lines + origin_lines(modules.origin(node) if modules else None, self._cells)

    def _scope_text(self, scope: int) -> str:
        found = self._index.meta["scopes"][scope]
        if found["kind"] == "function":
            return f"function {shown(found['name'], 60)}"
        owner = found["owner"]
        return f"{shown(found['attribute'], 40)} of {shown(self._index.node_op(owner), 40)} #{owner}"

    def _error(self, error: "NodeError | None") -> list[Line]:
        if error is None:
            return []
        word, role = error_word(error)
        told: Line = [("error ", "dim"), (f"max-abs {sig(error.max_abs)}  ", ""), (word, role)]
        meaning = MEANINGS.get(word, "")
        return wrap_runs([*told, (f": {meaning}" if meaning else "", "dim")], self._cells, 6)

    def _tensors(self, node: int) -> list[Line]:
        """What the node reads, captures and makes; too long names have the same room, so that they are told apart."""
        index, lines = self._index, list[Line]()
        captured = index.node_captures(node)
        groups = (("in", index.node_inputs(node)), ("cap", captured), ("out", index.node_outputs(node)))
        rooms = {at: self._name_room(at) for _, tensors in groups for at in tensors[:MOST_TENSORS] if at >= 0}
        long = (room for at, room in rooms.items() if cell_len(in_full(index.tensor_name(at))) > room)
        least = min(long, default=self._cells)
        for word, tensors in groups:
            for count, tensor in enumerate(tensors[:MOST_TENSORS]):
                lines.append(self._tensor("" if count else word, tensor, rooms.get(tensor, 0), least))
            if len(tensors) > MOST_TENSORS:
                lines.append([(f"     and {len(tensors) - MOST_TENSORS} more", "dim")])
        return lines

    def _tensor(self, word: str, tensor: int, room: int, least: int) -> Line:
        if tensor < 0:
            return [(f"{word:<4} ", "dim"), ("(absent)", "dim")]
        name = self._index.tensor_name(tensor)
        marked, kind_cells = name in self._marks, self._cells - 8 - room
        text = self._names.text(name, room if cell_len(in_full(name)) <= room else least)
        return [
            (f"{word:<4} ", "dim"), (f"{self._glyphs.mark} " if marked else "  ", "mark" if marked else ""),
            (fit(text, room) + " ", ""),
            (fit(self._kind(tensor), kind_cells, self._glyphs.ellipsis, "start").rstrip(), "dim"),
        ]  # fmt: skip

    def _name_room(self, tensor: int) -> int:
        """Cells that there are for a name before its type, which has half of the line, and what the name leaves."""
        room = self._cells - 7
        left = room - 1 - cell_len(in_full(self._index.tensor_name(tensor)))
        return max(4, room - 1 - min(cell_len(self._kind(tensor)), max(16, room // 2, left)))

    def _kind(self, tensor: int) -> str:
        return tensor_type(self._index, tensor, self._glyphs) + self._kind_text(tensor)

    def _kind_text(self, tensor: int) -> str:
        kind = self._index.tensor_kind(tensor)
        if kind == "initializer":
            place = self._index.weight(tensor)
            return f" weight {size_text(place[2])}" if place else " weight"
        if kind == "node":
            return " output" if self._index.is_output(tensor) else ""
        return f" {kind}"

    def _attributes(self, node: int) -> list[Line]:
        lines: list[Line] = []
        for name, text in self._index.attributes(node):
            lines += self._wrapped([(f"{shown(name, 40)} ", "dim"), (text, "")], 2, 4)
        return lines

    def _bodies(self, node: int) -> list[Line]:
        lines: list[Line] = []
        for scope in self._index.bodies(node):
            attribute = shown(self._index.meta["scopes"][scope]["attribute"], 40)
            lines += self._wrapped([(f"{attribute}: ", "dim"), (self._body_text(scope), "")])
        return lines

    def _body_text(self, scope: int) -> str:
        """The first nodes of a body."""
        index = self._index
        nodes = index.scope_nodes(scope).tolist()
        found = [f"#{node} {shown(index.node_op(node), 40)}" for node in nodes[:MOST_TENSORS]]
        more = len(nodes) - len(found)
        return ", ".join(found) + (f" and {more} more" if more > 0 else "")

    def _weights(self, node: int) -> list[Line]:
        lines: list[Line] = []
        weights = [t for t in self._index.node_inputs(node) if t >= 0 and self._index.tensor_kind(t) == "initializer"]
        for name in dict.fromkeys(self._index.tensor_name(tensor) for tensor in weights):
            if name in self._statistics:
                lines.append([("weight ", "dim"), (self._names.inline(self._cells - 8)(name), "")])
                lines += [[(f"  {text}", "")] for text in weight_lines(self._statistics[name])]
        return lines or ([[("w  statistics of the weights", "dim")]] if weights else [])

    def _wrapped(self, line: Line, most: int = NAME_LINES, indent: int = 2) -> list[Line]:
        lines = wrap_runs(line, self._cells, indent)
        if len(lines) > most:
            lines = lines[:most]
            lines[-1] = [*lines[-1][:-1], (lines[-1][-1][0][:-1] + self._glyphs.ellipsis, lines[-1][-1][1])]
        return lines


def weight_lines(stats: Mapping[str, Any]) -> list[str]:
    """Mean and spread, extremes with their places, and what is not finite."""
    if stats["mean"] is None:
        return [f"no statistics for {stats['dtype']}"]
    low, high = index_text(stats["argmin"]), index_text(stats["argmax"])
    lines = [
        f"mean {stats['mean']:.4g}  std {stats['std']:.4g}  mean magnitude {stats['avg_magnitude']:.4g}",
        f"min {stats['min']:.5g} at {low}  max {stats['max']:.5g} at {high}",
    ]
    bad = [f"{stats[key]:,} {word}" for key, word in (("nan", "NaN"), ("inf", "Inf")) if stats[key]]
    return [*lines, ", ".join(bad)] if bad else lines
