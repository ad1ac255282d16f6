"""Choosing which tensors a comparison observes."""

from layerwise._tool.tui.commands import command
from layerwise._tool.tui.screens.graph_base import GraphBase


class GraphMarks(GraphBase, scope="graph"):
    """Marks are tensor names, shared with the Run screen through the session."""

    @command("graph.mark", "mark or unmark the node's outputs", keys="space", footer="mark")
    def mark(self) -> None:
        if self.session.index is None or not len(self._rows):
            return
        first, last = sorted((self._list.cursor if self._range_from is None else self._range_from, self._list.cursor))
        self._range_from = None
        self.state.say(self._control.toggle_marks(self._nodes_of(first, last)))
        self._update_status()

    def _nodes_of(self, first: int, last: int) -> list[int]:
        """The nodes of rows, those in folded blocks too."""
        return list(dict.fromkeys(node for row in range(first, last + 1) for node in self._rows.nodes_at(row)))

    @command("graph.range", "start a range; space marks it", keys="v")
    def range(self) -> None:
        self._range_from = self._list.cursor if self._range_from is None else None
        self._update_status()

    @command("graph.mark_matches", "mark all matches of the filter", keys="asterisk")
    def mark_matches(self) -> None:
        matches = self._rows.matches
        if matches is None:
            self.state.say("no filter: / first, or :mark GLOB")
            return
        names = self._control.output_names(matches.tolist())
        self.session.mark(names)
        self.state.say(f"marked the {len(names):,} outputs of {len(matches):,} nodes")

    @command("graph.clear_marks", "clear all marks", keys="minus")
    def clear_marks(self) -> None:
        self.state.say(f"cleared {len(self.session.marks):,} marks")
        self.session.unmark(set(self.session.marks))

    @command("graph.mark_glob", "mark tensors by name, glob or all", line="mark GLOB", complete="names")
    def mark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self.session.index is not None else set()
        self.session.mark(names)
        self.state.say(f"{len(names):,} tensors match", "info" if names else "warn")

    @command("graph.unmark_glob", "unmark tensors by name, glob or all", line="unmark GLOB")
    def unmark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self.session.index is not None else set()
        self.session.unmark(names)
