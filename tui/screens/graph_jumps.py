"""Jumps along the edges, by name, and back."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.presenters.graph_rows import columns, node_row
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.graph_base import GraphBase
from layerwise._tool.tui.screens.pick import Choice, PickScreen
from layerwise._tool.tui.state.graph import History
from layerwise._tool.tui.state.shared import AppState

MOST_CHOICES = 1000


class GraphJumps(GraphBase, scope="graph"):
    """Every jump is noted; `[` and `]` go through them like a browser's pages."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._history = History()

    def _jump(self, node: int) -> None:
        self._history.jump(self.session.node, node)
        self._go(node)

    def _go(self, node: int) -> None:
        self.session.select_node(node)

    @command("graph.goto", "go to a node or tensor by name or number", line="goto NAME", complete="names")
    def goto(self, text: str = "") -> None:
        try:
            self._jump(self._control.find(text))
        except LayerwiseError as error:
            self.state.say(str(error), "bad")

    def names(self, prefix: str) -> list[str]:
        return self._control.names_like(prefix)

    @command("graph.producer", "jump to a producer (parent)", keys="p", footer="producer")
    def producer(self) -> None:
        index = self.session.index
        self._choose_node("Producers", index.parents(self.session.node) if index else [])

    @command("graph.consumer", "jump to a consumer (child)", keys="c", footer="consumer")
    def consumer(self) -> None:
        index = self.session.index
        self._choose_node("Consumers", index.children(self.session.node) if index else [])

    def _choose_node(self, title: str, nodes: list[int]) -> None:
        if not nodes:
            self.state.say(f"no {title.lower()}")
        elif len(nodes) == 1:
            self._jump(nodes[0])
        else:
            choices = [Choice(self._node_choice(node), node) for node in nodes[:MOST_CHOICES]]
            if len(nodes) > MOST_CHOICES:
                title = f"{title}: the first {MOST_CHOICES:,} of {len(nodes):,}"
            self.app.push_screen(PickScreen(title, choices, self.state.glyphs), self._node_chosen)

    def _node_choice(self, node: int) -> Line:
        index = self._control.index
        at = columns(70, index.n_nodes, False)
        return node_row(index, node, at, self.session, self.state.glyphs)

    def _node_chosen(self, node: object) -> None:
        if isinstance(node, int):
            self._jump(node)

    @command("graph.back", "back to where you jumped from", keys="left_square_bracket,backspace")
    def back(self) -> None:
        node = self._history.back(self.session.node)
        if node is not None:
            self._go(node)

    @command("graph.forward", "forward again", keys="right_square_bracket")
    def forward(self) -> None:
        node = self._history.forward(self.session.node)
        if node is not None:
            self._go(node)
