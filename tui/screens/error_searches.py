"""What starts from a row of the layer error table: searches, a bundle, the way to the node."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.debug_results import DebugResults
from layerwise._tool.tui.controllers.node_errors import node_of_row
from layerwise._tool.tui.screens.searching import Searching
from layerwise._tool.tui.state.shared import AppState


class ErrorSearches(Searching, scope="errors"):
    """Base of the Errors screen, which says what row the cursor is on."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.errors = state.errors
        self._results = DebugResults(state)

    def place_in_view(self) -> int:
        """The table's row under the cursor, -1 if there is none."""
        raise NotImplementedError

    @command("errors.node", "the row's node in the Graph screen", keys="o", footer="graph", line="node")
    def show_node(self) -> None:
        index, place = self.session.index, self.place_in_view()
        if index is None or place < 0:
            self.state.say("no graph to show it in" if place >= 0 else "no row")
            return
        node = node_of_row(index, self.errors.table, place)
        if node < 0:
            self.state.say("this tensor is not made by a node of the open model", "warn")
            return
        self.session.select_node(node)
        self.post_message(self.Open("graph"))

    @command("errors.reduce", "reduce: the smallest part that makes this tensor wrong", keys="d", footer="reduce",
             line="reduce")  # fmt: skip
    def reduce(self) -> None:
        self.start_search("reduce", target=self._tensor_in_view())

    @command("errors.bisect", "bisect: the first node at which this tensor goes wrong", keys="b", footer="bisect",
             line="bisect")  # fmt: skip
    def bisect(self) -> None:
        self.start_search("bisect", target=self._tensor_in_view())

    @command("errors.locate", "locate: the local error of every layer joins the table", keys="L", footer="locate",
             line="locate")  # fmt: skip
    def locate(self) -> None:
        self.start_search("locate", then="its local errors join the table; 4 shows the suspects")

    def _tensor_in_view(self) -> str | None:
        place = self.place_in_view()
        return self.errors.table.tensors[place] if place >= 0 else None

    @command("errors.bundle", "write a repro bundle of the row's node", keys="B", line="bundle FOLDER")
    def bundle(self, folder: str = "") -> None:
        place = self.place_in_view()
        if place >= 0 and (row := self.errors.table.row(place)).i >= 0:
            self.run_work("debug-start", lambda: self._bundle(row, folder))
        else:
            self.state.say("this row has no node")

    async def _bundle(self, row: LayerRow, folder: str) -> None:
        job = self.errors.job
        target = folder or f"bundle-{job}-{row.i}"
        try:
            compare = self.starter.compare()
            self.state.say(await self._results.bundle_of(int(job), compare, [row.i], row.iteration, target), "good")
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
