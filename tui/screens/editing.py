"""What the groups of commands of Surgery share."""

from collections.abc import Awaitable, Callable

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.shell import shell_word
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Command, Commands
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.nodes import NodeView
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.widgets.following import run_latest, run_work

WHOLE = ("fold",)
"""Edits of the whole model."""


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
        """Open the `:` line, which says how many nodes are meant if they are the marked ones."""
        marked = self.marked_text()
        hint = f"{marked}: {hint}" if marked else hint
        self.page.post_message(self.page.TypeLine(text, hint))

    async def edit(self, verb: str, text: str) -> None:
        """Show what an edit of the chosen nodes would do. What does not fit is said."""
        if not self.is_free():
            return
        named = verb in WHOLE or (verb == "delete" and bool(text))
        if not named and self._on_unmade():
            self.state.say("this node is in the change on view only: enter makes that, esc leaves it", "bad")
        elif not named and self.surgery.session.marks and not self.surgery.marks_act:
            self._ask_whom(verb, text)
        else:
            await self._edit(verb, text)

    async def _edit(self, verb: str, text: str) -> None:
        try:
            await self.surgeon.open()
            await self.surgeon.leave()
            self.surgery.proposed = None
            edits, on_view = await self.surgeon.propose(verb, text, self.chosen())
        except LayerwiseError as error:
            self.refused(error)
            return
        self.surgery.proposed = (verb, "" if verb == "delete" else text)
        if on_view:
            self._show_made()
        else:
            told = f"{edits[0].describe()}: the worker computes it …"
            self.do_beside(told, lambda: self.surgeon.attempt(edits), self._show_made)

    def _on_unmade(self) -> bool:
        """Whether only the change on view has a chosen node: leaving it would move the cursor to another one."""
        preview = self.surgery.preview
        return preview is not None and any(preview.before.proto(node) is None for node in self.chosen())

    # ── which nodes ──

    def visit(self, anew: bool) -> None:
        """The screen is come to. anew: not from its own history or differences."""
        if anew:
            self.surgery.older_marks = frozenset(self.surgery.session.marks)

    def _ask_whom(self, verb: str, text: str) -> None:
        """Marks that the user may not think of any more do not outrank the cursor without a word."""
        index, here, marked = self.surgery.session.index, self.chosen(), len(self._marked())
        name = "" if index is None or not here else shown(index.node_name(here[0]) or index.node_op(here[0]), 60)
        rows = [
            Choice(
                [("c  ", "key"), (f"the node under the cursor: {name}", ""), ("   clears the marks", "dim")], False, "c"
            ),
            Choice([("m  ", "key"), (f"{marked:,} marked node{'s' * (marked != 1)}", "mark")], True, "m"),
        ]

        async def picked(marks: bool) -> None:
            self.surgery.older_marks = frozenset()
            if not marks:
                self.surgery.session.unmark(set(self.surgery.session.marks))
            await self._edit(verb, text)

        title = f"{marked:,} nodes were marked before you came here: {verb} which?"
        self.page.choose(title, rows, picked)

    def chosen(self) -> list[int]:
        """The marked nodes, else those of the row under the cursor."""
        if self.surgery.marks_act and (marked := self._marked()):
            return marked
        rows = self._view.rows
        return rows.nodes_at(self._view.list.cursor) if self._view.list.cursor < len(rows) else []

    def _marked(self) -> list[int]:
        """The nodes that make marked tensors, in the order of the graph."""
        overlay = self.surgery.overlay
        if overlay is None:
            return []
        tensors = [overlay.find_tensor(name) for name in self.surgery.session.marks]
        marked = {overlay.producer(tensor) for tensor in tensors if tensor >= 0} - {-1}
        return [node for node in overlay.order.tolist() if node in marked]

    def marked_text(self) -> str:
        """`8 marked nodes` where edits are of those, else nothing."""
        marked = len(self._marked()) if self.surgery.marks_act else 0
        return f"{marked:,} marked node{'s' * (marked != 1)}" if marked else ""

    # ── what is shown ──

    def _show_made(self) -> None:
        self.state.say(self.marked_text())
        self.show_change()

    def show_change(self) -> None:
        """Let the worker look at the result of the change; the cursor stays where it is."""
        run_latest(self.page, "surgery-check", self.surgeon.check)

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
