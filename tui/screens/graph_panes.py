"""Going from pane to pane."""

from textual import on

from layerwise._tool.tui.commands import command
from layerwise._tool.tui.screens.graph_base import GraphBase
from layerwise._tool.tui.widgets.detail_pane import DetailPane
from layerwise._tool.tui.widgets.lines import LineWidget
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class GraphPanes(GraphBase, scope="graph"):
    """Tab goes round the panes that there is room for."""

    @on(VirtualList.Selected, "#nodes")
    def _opened(self) -> None:
        if self._rows.head_at(self._list.cursor) is None:
            self.toggle_detail()
        else:
            self.turn_fold()

    @command("graph.fold", "fold equal blocks to one row each (enter opens one), or show all nodes", keys="z")
    def toggle_folding(self) -> None:
        if self.session.index is None:
            return
        found = self._rows.fold(not self._rows.folding)
        self.session.remember("graph", form={"fold": self._rows.folding})
        self._list.set_model(self._list.model, self._rows.row_of(self.session.node))
        self._update_head()
        blocks = f"{found} group{'s' * (found != 1)} of equal blocks; enter opens one" if found else "no equal blocks"
        self.state.say(blocks if self._rows.folding else "all nodes are shown")

    @command("graph.fold_block", "fold the block around the node", keys="Z")
    def turn_fold(self) -> None:
        self._list.set_model(self._list.model, self._rows.turn(self._list.cursor))

    @command("graph.detail", "to the detail pane, or back to the list", keys="tab", footer="detail")
    def toggle_detail(self) -> None:
        panes: list[LineWidget] = [self._list, self.query_one("#detail", DetailPane)]
        if self.has_class("wide"):
            panes.append(self.query_one("#around", DetailPane))
        at = next((place for place, pane in enumerate(panes) if pane is self.screen.focused), 0)
        to = (at + 1) % len(panes)
        self.remove_class("zoomed")
        self.set_class(to > 0 and self.has_class("narrow"), "on-detail")
        panes[to].focus()
        self.call_after_refresh(self._show_detail)

    @command("graph.zoom", "hide or show the detail pane beside the list", keys="plus")
    def zoom(self) -> None:
        if not self.has_class("narrow"):
            self.toggle_class("zoomed")
            self._list.focus()
            self.call_after_refresh(self._after_resize)
