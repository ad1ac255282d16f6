"""The Graph screen: nodes, filter, detail and neighbourhood, marks, jumps."""

from textual.app import ComposeResult

from layerwise._tool.backends.text import counted
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.graph import GraphController
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.graph_rows import columns, node_row
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.node_folding import NodeFolds
from layerwise._tool.tui.screens.node_model import NodeModel
from layerwise._tool.tui.screens.nodes import NodeView
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.source import TITLE, offer
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import run_latest
from layerwise._tool.tui.widgets.virtual_list import VirtualList

MOST_CHOICES = 1000


class NodeGroup(Commands):
    """A group of commands of a page that shows nodes."""

    def __init__(self, page: Page, view: NodeView, control: GraphController) -> None:
        self._page, self._state, self._view, self._session = page, page.state, view, view.session
        self._control = control

    def _index_with_nodes(self) -> GraphIndex | None:
        """The graph on view if it has nodes, of which one is selected."""
        index = self._session.index
        return index if index is not None and index.n_nodes else None


class Filter(NodeGroup, scope="graph"):
    """`/` narrows the rows as one types; escape shows all again and keeps the matches for n and N."""

    @command("graph.filter", "filter nodes: text op: dtype: name: module: !not", keys="slash", footer="filter",
             line="filter TEXT")  # fmt: skip
    def filter(self, text: str = "") -> None:
        field = self._view.filter
        if text:
            field.set_value(text)
            self._view.apply_filter()
        else:
            self._view.write_filter()

    @command("graph.escape", "end the range, show all rows, clear the filter", keys="escape", means="back")
    def escape(self) -> None:
        view = self._view
        if view.range_from is not None:
            view.range_from = None
            view.update_status()
        elif view.rows.narrowed:
            view.rows.widen()
            view.show_rows(view.rows.row_of(view.session.node))
            view.update_head()
        elif view.rows.matches is not None:
            view.clear_filter()

    @command("graph.next", "next match", keys="n")
    def next_match(self) -> None:
        self._go_match(1)

    @command("graph.previous", "previous match", keys="N")
    def previous_match(self) -> None:
        self._go_match(-1)

    def _go_match(self, step: int) -> None:
        node = self._view.rows.next_match(self._view.session.node, step)
        if node is None:
            self._state.say("no matches: / filters")
        else:
            self._view.list.move_to(self._view.rows.row_of(node))


class Jumps(NodeGroup, scope="graph"):
    """Along the edges, by name, and back. Every jump is noted; `[` and `]` go through them like a browser's pages."""

    def __init__(self, page: Page, view: NodeView, control: GraphController) -> None:
        super().__init__(page, view, control)
        self._history = view.kept.jumps

    def _jump(self, node: int) -> None:
        self._history.jump(self._session.node, node)
        self._go(node)

    def _go(self, node: int) -> None:
        self._view.kept.keep(self._session)
        self._session.select_node(node)

    @command("graph.goto", "go to a node or tensor by name or number", line="goto NAME", complete="names")
    def goto(self, text: str = "") -> None:
        with self._page.state.telling():
            self._jump(self._control.find(text))

    def names(self, prefix: str) -> list[str]:
        return self._control.names_like(prefix)

    @command("graph.producer", "jump to a producer (parent)", keys="p,less_than_sign", footer="producer")
    def producer(self) -> None:
        index = self._index_with_nodes()
        self._choose_node("Producers", index.parents(self._session.node) if index is not None else [])

    @command("graph.consumer", "jump to a consumer (child)", keys="c,greater_than_sign", footer="consumer")
    def consumer(self) -> None:
        index = self._index_with_nodes()
        self._choose_node("Consumers", index.children(self._session.node) if index is not None else [])

    def _choose_node(self, title: str, nodes: list[int]) -> None:
        if not nodes:
            self._page.state.say(f"no {title.lower()}")
        elif len(nodes) == 1:
            self._jump(nodes[0])
        else:
            names, offered = Names(self._page.state.glyphs), nodes[:MOST_CHOICES]
            names.look(lambda: [self._node_choice(node, names) for node in offered])
            choices = [Choice(self._node_choice(node, names), node) for node in offered]
            if len(nodes) > MOST_CHOICES:
                title = f"{title}: the first {MOST_CHOICES:,} of {len(nodes):,}"
            self._page.choose(title, choices, self._jump)

    def _node_choice(self, node: int, names: Names) -> Line:
        index = self._control.index
        at = columns(70, index.n_nodes, False)
        return node_row(index, node, at, self._session, names, self._page.state.glyphs)

    @command("graph.back", "back to where you jumped from", keys="left_square_bracket,backspace")
    def back(self) -> None:
        node = self._history.back(self._session.node)
        if node is not None and self._view.rows.knows(node):
            self._go(node)

    @command("graph.forward", "forward again", keys="right_square_bracket")
    def forward(self) -> None:
        node = self._history.forward(self._session.node)
        if node is not None and self._view.rows.knows(node):
            self._go(node)


class Marks(NodeGroup, scope="graph"):
    """Which tensors a comparison observes: names, shared with the Run screen through the session."""

    @command("graph.mark", "mark or unmark the node's outputs", keys="space", footer="mark")
    def mark(self) -> None:
        view = self._view
        if self._session.index is None or not len(view.rows):
            return
        nodes = dict.fromkeys(node for row in view.chosen_rows() for node in view.rows.nodes_at(row))
        view.range_from = None
        self._state.say(self._control.toggle_marks(nodes))
        view.update_status()

    @command("graph.range", "start a range; space marks it", keys="v")
    def start_range(self) -> None:
        self._view.range_from = self._view.list.cursor if self._view.range_from is None else None
        self._view.update_status()

    @command("graph.mark_matches", "mark all matches of the filter", keys="asterisk")
    def mark_matches(self) -> None:
        matches = self._view.rows.matches
        if matches is None:
            self._state.say("no filter: / first, or :mark GLOB")
            return
        names = self._control.output_names(matches.tolist())
        self._session.mark(names)
        self._state.say(f"marked {counted(len(names), 'output')} of {counted(len(matches), 'node')}")

    @command("graph.clear_marks", "clear all marks", keys="minus")
    def clear_marks(self) -> None:
        self._state.say(f"cleared {counted(len(self._session.marks), 'mark')}")
        self._session.unmark(set(self._session.marks))

    @command("graph.mark_glob", "mark tensors by name, glob or all", line="mark GLOB", complete="names")
    def mark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self._session.index is not None else set()
        self._session.mark(names)
        self._state.say(f"{counted(len(names), 'tensor')} match{'es' * (len(names) == 1)}", "info" if names else "warn")

    def names(self, prefix: str) -> list[str]:
        return self._control.names_like(prefix)

    @command("graph.unmark_glob", "unmark tensors by name, glob or all", line="unmark GLOB")
    def unmark_glob(self, pattern: str = "") -> None:
        names = self._control.tensors_like(pattern) if self._session.index is not None else set()
        self._session.unmark(names)


class NodeCommands(NodeGroup, scope="graph"):
    """What else is done with the node under the cursor."""

    @command("graph.weights", "statistics of the node's weights", keys="w")
    def weights(self) -> None:
        if self._index_with_nodes() is not None:
            node = self._session.node
            run_latest(self._page, "weights", lambda: self._read_weights(node))

    async def _read_weights(self, node: int) -> None:
        say = self._page.state.say
        say("reading weights …")
        with self._page.state.telling():
            count = await self._control.read_weights(node)
            say(f"{counted(count, 'weight')} read" if count else "this node reads no weights")
            self._view.show_detail()

    @command("graph.surgery", "change the graph from this node on", keys="x", footer="surgery")
    def operate(self) -> None:
        edited = self._page.state.surgery.session
        if len(self._view.rows):
            edited.select_node(self._view.node())
        edited.mark(self._session.marks)
        self._page.open("surgery")

    @command("graph.source", TITLE, keys="O", line="source")
    def source(self) -> None:
        index = self._index_with_nodes()
        modules = index.modules() if index is not None else None
        origin = modules.origin(self._session.node) if modules is not None else None
        offer(self._page, origin.line if origin else None)

    @command("graph.yank", "copy a name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        if self._index_with_nodes() is not None:
            self._page.offer_copies(self._control.yank_targets())


def graph_groups(page: Page, view: NodeView, control: GraphController) -> tuple[Commands, ...]:
    """The commands of a page that shows nodes."""
    return (
        view,
        NodeFolds(view),
        *(kind(page, view, control) for kind in (Filter, Jumps, Marks, NodeCommands)),
    )


class GraphScreen(Page, scope="graph"):
    """The nodes of the open model, and the commands of its groups."""

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        control = GraphController(state.session, controllers.warm)
        self.view = NodeView(NodeModel(state, state.session), control, VirtualList)
        self.main_list = self.view.list
        self.groups = graph_groups(self, self.view, control)

    def compose(self) -> ComposeResult:
        yield self.view

    def shown_again(self) -> None:
        self.view.node_changed()
        self.view.update_status()

    def leave_pane(self) -> bool:
        return self.view.leave_pane()

    def paint(self) -> None:
        self.view.show_detail()
