"""The Graph screen: nodes, filter, detail and neighbourhood, marks, jumps."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.screens.graph_filter import GraphFilter
from layerwise._tool.tui.screens.graph_jumps import GraphJumps
from layerwise._tool.tui.screens.graph_marks import GraphMarks


class GraphScreen(GraphMarks, GraphFilter, GraphJumps, scope="graph"):
    """The commands of the three groups, and weights and copying."""

    @command("graph.weights", "statistics of the node's weights", keys="w")
    def weights(self) -> None:
        if self.session.index is not None and self.session.index.n_nodes:
            node = self.session.node
            self.run_latest("weights", lambda: self._read_weights(node))

    async def _read_weights(self, node: int) -> None:
        self.state.say("reading weights …")
        try:
            count = await self._control.read_weights(node)
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
            return
        self.state.say(f"{count} weight{'s' * (count > 1)} read" if count else "this node reads no weights")
        self._show_detail()

    @command("graph.surgery", "change the graph from this node on", keys="x", footer="surgery")
    def operate(self) -> None:
        session = self.state.surgery.session
        if len(self._rows):
            session.select_node(self._rows.node_at(self._list.cursor))
        session.mark(self.session.marks)
        self.post_message(self.Open("surgery"))

    @command("graph.yank", "copy a name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        index = self.session.index
        if index is None or not index.n_nodes:
            return
        self.offer_copies(self._control.yank_targets())
