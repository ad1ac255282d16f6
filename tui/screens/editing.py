"""What the groups of commands of Surgery share."""

from collections.abc import Awaitable, Callable

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.commands import Command, Commands
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.screens.nodes import NodeView
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.widgets.bars import CommandBar
from layerwise._tool.tui.widgets.following import run_latest, run_work


class Editing:
    """What the groups of Surgery share: which nodes are edited, one edit at a time, and what is said if it fails."""

    def __init__(self, page: Page, view: NodeView, surgeon: SurgeryController) -> None:
        self.page, self.state, self.surgery, self.surgeon = page, page.state, page.state.surgery, surgeon
        self._view = view
        self._busy = False

    def is_free(self) -> bool:
        """Whether no edit is being computed; if one is, it is said."""
        if self._busy:
            self.state.say("an edit is being computed: wait for it", "warn")
        return not self._busy

    async def did(self, work: Awaitable[object]) -> bool:
        """Wait for something the controller does; what goes wrong is said."""
        self._view.settle()
        try:
            await work
        except LayerwiseError as error:
            self.refused(error)
            return False
        return True

    def do_beside(self, told: str, work: Callable[[], Awaitable[object]], then: Callable[[], None]) -> None:
        """Do what takes long, beside the keys; `then` what follows if it goes well. No edit can be made meanwhile."""
        self._busy = True
        self.state.say(told)

        async def do() -> None:
            done = await self.did(work())
            self._busy = False
            if done:
                then()

        run_work(self.page, "surgery-edit", do)

    def refused(self, error: LayerwiseError) -> None:
        """Say why, and then what: the line may be too short for both."""
        reason = getattr(error, "reason", "")
        edit = getattr(error, "edit", None)
        self.state.say(f"{reason} ({edit.describe()})" if reason and edit else str(error), "bad")

    def prompt(self, text: str, hint: str) -> None:
        """Open the `:` line at once: what is typed ahead belongs there."""
        self.page.app.query_one(CommandBar).ask(text, hint)

    async def edit(self, verb: str, text: str) -> None:
        """Show what an edit of the chosen nodes would do. What does not fit is said."""
        if not self.is_free():
            return
        try:
            await self.surgeon.open()
            await self.surgeon.leave()
            self._view.settle()
            edits, shown = await self.surgeon.propose(verb, text, self.chosen())
        except LayerwiseError as error:
            self.refused(error)
            return
        self.surgery.last = (verb, "" if verb == "delete" else text)
        if shown:
            self._show_made()
        else:
            told = f"{edits[0].describe()}: the worker computes it …"
            self.do_beside(told, lambda: self.surgeon.attempt(edits), self._show_made)

    def _show_made(self) -> None:
        self.state.say("")
        self.show_change()

    def show_change(self) -> None:
        """Put the cursor on a node that changes, and let the worker look at the result."""
        preview = self.surgery.preview
        touched = preview.nodes() if preview is not None else []
        if touched and len(self._view.rows) and self._view.node() not in touched:
            self.surgery.session.select_node(touched[0])
        self.page.call_after_refresh(run_latest, self.page, "surgery-check", self.surgeon.check)

    def chosen(self) -> list[int]:
        """The marked nodes, else those of the row under the cursor."""
        overlay = self.surgery.overlay
        if overlay is None:
            return []
        tensors = [overlay.find_tensor(name) for name in self.surgery.session.marks]
        marked = {overlay.producer(tensor) for tensor in tensors if tensor >= 0} - {-1}
        if marked:
            return [node for node in overlay.order.tolist() if node in marked]
        return self._view.rows.nodes_at(self._view.list.cursor) if len(self._view.rows) else []

    def name(self) -> str:
        """The name of the first of them as it is typed, "" if there is none."""
        nodes, index = self.chosen(), self.surgery.session.index
        return shell_word(index.node_name(nodes[0])) if nodes and index is not None else ""


class EditGroup(Commands):
    """A group of commands of Surgery."""

    def __init__(self, editing: Editing) -> None:
        self._editing, self._surgeon, self._page, self._state = editing, editing.surgeon, editing.page, editing.state

    def completions(self, found: Command, prefix: str) -> list[str]:
        try:
            return self._surgeon.model.complete(found.verb, prefix, self._editing.chosen())
        except LayerwiseError:
            return []
