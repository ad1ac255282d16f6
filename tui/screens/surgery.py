"""The Surgery screen: the edited graph in a list, and the change that waits below it."""

from textual.app import ComposeResult

from layerwise._tool.tui.controllers.graph import GraphController
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.preview import changes, preview_lines
from layerwise._tool.tui.presenters.surgery import SIGN, edited_line, signed_row
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.editing import Editing
from layerwise._tool.tui.screens.graph import graph_groups
from layerwise._tool.tui.screens.node_model import NodeModel
from layerwise._tool.tui.screens.nodes import NodeView
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.surgery_edits import Change, EditCommands, EditHistory
from layerwise._tool.tui.screens.surgery_files import EditFiles
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import follow, run_latest, run_work
from layerwise._tool.tui.widgets.footed_list import FootedList


class EditedNodes(NodeModel):
    """Rows of the edited graph, with a sign where they differ."""

    sign = SIGN

    def row(self, i: int, cells: int) -> Line:
        sign = " " if self.rows.head_at(i) else self.state.surgery.sign(self.rows.node_at(i))
        return signed_row(sign, super().row(i, cells - SIGN))

    def status(self, in_range: int | None, cells: int) -> Line:
        return edited_line(self.state.surgery, cells, in_range)

    def notes(self, node: int) -> list[Line]:
        """How a node that waits to be changed will differ."""
        preview = self.state.surgery.preview
        if preview is None or preview.signs.get(node) != "~":
            return []
        return [[(f"~ {text}", "warn")] for text in changes(preview.before, node, preview.after, node)] + [[]]


class SurgeryScreen(Page, scope="surgery", also=("graph",)):
    """The nodes of the edited graph. A change is shown in the list and told below it; enter makes it."""

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._surgeon = controllers.surgery
        control = GraphController(state.surgery.session, controllers.warm)
        self.view = NodeView(EditedNodes(state, state.surgery.session), control, FootedList)
        self.main_list = self.view.list
        editing = self._editing = Editing(self, self.view, self._surgeon)
        of_graph = graph_groups(self, self.view, control)
        self.groups = (
            Change(editing), EditCommands(editing), EditHistory(editing), EditFiles(editing), *of_graph,
        )  # fmt: skip
        self._previewing = False

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        follow(self, self.state.surgery.on_change, self.paint)
        follow(self, self.state.session.on_index, self._open_soon)
        self._open_soon()

    def on_unmount(self) -> None:
        self._surgeon.close()

    def shown_again(self) -> None:
        self._editing.visit(self.came_from not in ("surgery", "history", "changes"))
        self.view.node_changed()
        self.view.update_status()
        self._open_soon()

    def leave_pane(self) -> bool:
        return self.view.leave_pane()

    def _open_soon(self) -> None:
        if not self.state.surgery.opened:
            run_work(self, "surgery-open", self._surgeon.open, Waits.OPENING)
            run_work(self, "surgery-warm", self._surgeon.warm, Waits.JOB)

    def paint(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        surgery, nodes = self.state.surgery, self.view.list
        preview = surgery.preview
        assert isinstance(nodes, FootedList)
        cells, rows, glyphs = nodes.size.width - 1, nodes.usual_foot, self.state.glyphs
        nodes.set_foot([] if preview is None else preview_lines(preview, surgery.check, cells, rows, glyphs))
        self.view.update_status()
        self.view.show_detail()
        if preview is None and surgery.opened and self._surgeon.head_to_check is not None:
            run_latest(self, "surgery-types", self._surgeon.check_head)
        if self._previewing != (preview is not None):
            self._previewing = preview is not None
            self.post_message(self.FooterChanged())
