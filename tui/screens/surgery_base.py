"""The edited graph in a list, and the change that waits below it."""

from collections.abc import Awaitable

from textual.events import Key, Resize

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.commands import Command, command
from layerwise._tool.tui.controllers.surgery import surgeon
from layerwise._tool.tui.presenters.ghost import changes, ghost_lines
from layerwise._tool.tui.presenters.surgery_rows import SIGN, signed_row
from layerwise._tool.tui.presenters.surgery_status import edited_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.graph import GraphScreen
from layerwise._tool.tui.screens.graph_list import NodeModel
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.footed_list import FootedList

APPLY = Command("surgery.apply", "make the change on view", keys="enter", footer="apply", scope="surgery",
                method="apply")  # fmt: skip
LEAVE = Command("surgery.leave", "leave the change on view", keys="escape", footer="leave it", scope="surgery",
                method="leave")  # fmt: skip


class SurgeryRows(NodeModel):
    """Rows of the edited graph, with a sign where they differ."""

    def row(self, i: int, cells: int) -> Line:
        sign = " " if self._rows.head_at(i) else self._state.surgery.sign(self._rows.node_at(i))
        return signed_row(sign, super().row(i, cells - SIGN))


class SurgeryBase(GraphScreen, scope="surgery"):
    """The Graph screen over the edited graph. A change is shown in the list and told below it; enter makes it."""

    LIST = FootedList
    _list: FootedList

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._surgeon = surgeon(state)
        self.busy = False
        self._ghostly = False

    @property
    def session(self) -> Session:
        return self.state.surgery.session

    def own_scopes(self) -> tuple[str, ...]:
        return ("surgery", "graph")

    def on_mount(self) -> None:
        self.follow(self.state.surgery.on_change, self._surgery_changed)
        self.follow(self.state.session.on_index, self._open_soon)
        self._open_soon()

    def on_unmount(self) -> None:
        self._surgeon.close()

    def shown_again(self) -> None:
        super().shown_again()
        self._open_soon()

    def laid_out(self) -> None:
        super().laid_out()
        self._surgery_changed()

    def _open_soon(self) -> None:
        if not self.state.surgery.opened:
            self.run_work("surgery-open", self._surgeon.warm)

    # ── drawing ──

    def _model(self) -> NodeModel:
        return SurgeryRows(self.state, self.session, self._rows)

    def _header(self, cells: int) -> Line:
        return [("  ", "head"), *super()._header(cells - SIGN)]

    def _status(self, cells: int) -> Line:
        in_range = None if self._range_from is None else abs(self._list.cursor - self._range_from) + 1
        return edited_line(self.state.surgery, cells, in_range)

    def _notes(self, node: int) -> list[Line]:
        """How a node that waits to be changed will differ, above its detail."""
        ghost = self.state.surgery.ghost
        if ghost is None or ghost.signs.get(node) != "~":
            return []
        return [[(f"~ {text}", "warn")] for text in changes(ghost.before, node, ghost.after, node)] + [[]]

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._surgery_changed)

    def _surgery_changed(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        ghost, cells = self.state.surgery.ghost, self._list.size.width - 1
        lines = [] if ghost is None else ghost_lines(ghost, self.state.surgery.check, cells, self.state.glyphs)
        self._list.set_foot(lines)
        self._update_status()
        self._show_detail()
        if ghost is None and self.state.surgery.opened:
            self.run_latest("surgery-types", self._surgeon.check_head)
        if self._ghostly != (ghost is not None):
            self._ghostly = ghost is not None
            self.post_message(self.FooterChanged())

    # ── the change that waits ──

    def footer_keys(self) -> list[Command]:
        return [APPLY, LEAVE] if self.state.surgery.ghost is not None else []

    async def take_key(self, event: Key) -> bool:
        if self.state.surgery.ghost is None or event.key not in ("enter", "escape"):
            return await super().take_key(event)
        await (self.apply() if event.key == "enter" else self.leave())
        return True

    @command("surgery.apply", "make the change on view", line="apply")
    async def apply(self) -> None:
        if not self._is_free():
            return
        if self._surgeon.slow_to_apply:
            self.busy = True
            self.state.say("making one edit after the other …")
            self.run_work("surgery-edit", self._apply_slowly)
        else:
            await self._did(self._surgeon.apply())

    async def _apply_slowly(self) -> None:
        await self._did(self._surgeon.apply())
        self.busy = False

    @command("surgery.leave", "leave the change on view", line="leave")
    async def leave(self) -> None:
        if self._is_free():
            await self._did(self._surgeon.leave())

    def _is_free(self) -> bool:
        """Whether no edit is being computed; if one is, it is said."""
        if self.busy:
            self.state.say("an edit is being computed: wait for it", "warn")
        return not self.busy

    async def _did(self, work: Awaitable[object]) -> bool:
        """Wait for something the controller does; what goes wrong is said."""
        self._settle_cursor()
        try:
            await work
        except LayerwiseError as error:
            self._refused(error)
            return False
        return True

    def _settle_cursor(self) -> None:
        """A move just made is told by a message that may still be on its way."""
        if len(self._rows):
            self.session.select_node(self._rows.node_at(self._list.cursor))

    def _refused(self, error: LayerwiseError) -> None:
        """Say why, and then what: the line may be too short for both."""
        reason = getattr(error, "reason", "")
        edit = getattr(error, "edit", None)
        self.state.say(f"{reason} ({edit.describe()})" if reason and edit else str(error), "bad")
