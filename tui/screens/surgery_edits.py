"""The commands of Surgery that edit: of the node under the cursor, or of all marked ones."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from textual.events import Key

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.commands import REGISTRY, Command, Commands, command
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.screens.graph import Jumps
from layerwise._tool.tui.screens.nodes import NodeView
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.pick import Choice
from layerwise._tool.tui.widgets.bars import CommandBar
from layerwise._tool.tui.widgets.following import run_latest, run_work

HINTS = {
    "insert": "OP [name=value] [with TENSOR|NUMBER] [before | on TENSOR]   tab completes",
    "replace": "OP [name=value] [with TENSOR|NUMBER]   tab completes",
    "op": "another operator, all else stays   tab completes",
    "attr": "NAME=VALUE, NAME= removes it   tab completes",
    "rename": "the node's new name",
    "rename-tensor": "[TENSOR] NEW   tab completes",
    "edit": "KIND field=value   tab completes",
    "write": "a file   tab completes",
}
LOW = (("f", "float16", ""), ("b", "bfloat16", ""))
PARTS = (
    ("a", "alone", "these nodes alone"), ("n", "around 1", "with their neighbours"),
    ("t", "to", "from the inputs to here"), ("f", "from", "from here to the outputs"),
)  # fmt: skip


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
        if touched and self._view.node() not in touched:
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


class Change(EditGroup, scope="surgery"):
    """The change on view, which is not made yet: enter makes it, escape leaves it."""

    @command("surgery.apply", "make the change on view", line="apply")
    async def apply(self) -> None:
        if not self._editing.is_free():
            return
        if self._surgeon.slow_to_apply:
            self._editing.do_beside("making one edit after the other …", self._surgeon.apply, lambda: None)
        else:
            await self._editing.did(self._surgeon.apply())

    @command("surgery.leave", "leave the change on view", line="leave")
    async def leave(self) -> None:
        if self._editing.is_free():
            await self._editing.did(self._surgeon.leave())

    async def take_key(self, event: Key) -> bool:
        if self._state.surgery.preview is None or event.key not in ("enter", "escape"):
            return False
        await (self.apply() if event.key == "enter" else self.leave())
        return True

    def footer_keys(self) -> list[Command]:
        return [APPLY, LEAVE] if self._state.surgery.preview is not None else []


APPLY = replace(REGISTRY["surgery.apply"], keys="enter", footer="apply", line="")
LEAVE = replace(REGISTRY["surgery.leave"], keys="escape", footer="leave it", line="")


class EditCommands(EditGroup, scope="surgery"):
    """Every key of an edit is a line of the `:` prompt too; nothing is changed before enter on what it would do."""

    @command("surgery.delete", "delete, and reconnect around it", keys="d", footer="delete", line="delete [NODE…]")
    async def delete(self, text: str = "") -> None:
        await self._editing.edit("delete", text)

    @command("surgery.insert", "insert a node after it, before it or on a tensor", keys="i", footer="insert",
             line="insert OP …")  # fmt: skip
    async def insert(self, text: str = "") -> None:
        await self._typed("insert", text)

    @command("surgery.replace", "replace it by another node", keys="r", footer="replace", line="replace OP …")
    async def replace_node(self, text: str = "") -> None:
        await self._typed("replace", text)

    @command("surgery.attribute", "change an attribute", keys="c", footer="attribute", line="attr NAME=VALUE")
    async def attribute(self, text: str = "") -> None:
        await self._typed("attr", text)

    @command("surgery.extract", "extract a part as the model", keys="x", footer="extract", line="extract PART")
    async def extract(self, text: str = "") -> None:
        if text:
            await self._editing.edit("extract", text)
        else:
            self._pick("Extract which part?", "extract", PARTS)

    @command("surgery.rename", "rename the node", keys="R", footer="rename", line="rename NAME")
    async def rename(self, text: str = "") -> None:
        await self._typed("rename", text, self._editing.name())

    @command("surgery.rename_tensor", "rename a tensor, the node's first output by default",
             line="rename-tensor [TENSOR] NAME")  # fmt: skip
    async def rename_tensor(self, text: str = "") -> None:
        await self._typed("rename-tensor", text)

    @command("surgery.output", "make what it makes graph outputs, or end that", keys="o", footer="output",
             line="output [TENSOR…]")  # fmt: skip
    async def output(self, text: str = "") -> None:
        await self._editing.edit("output", text)

    @command("surgery.fold", "fold all constants", keys="f", footer="fold", line="fold [BYTES]")
    async def fold(self, text: str = "") -> None:
        await self._editing.edit("fold", text)

    @command("surgery.precision", "compute it in FP16 or bfloat16, with casts around it", keys="p", footer="precision",
             line="precision TYPE")  # fmt: skip
    async def precision(self, text: str = "") -> None:
        if text:
            await self._editing.edit("precision", text)
        else:
            self._pick("Compute in which precision?", "precision", LOW)

    @command("surgery.op", "change its operator, all else stays", line="op OP")
    async def change_op(self, text: str = "") -> None:
        await self._typed("op", text)

    @command("surgery.any", "any other edit: shapes, opset, weights, patterns, clean up …", keys="e", footer="more",
             line="edit KIND …")  # fmt: skip
    async def any_edit(self, text: str = "") -> None:
        if text:
            await self._editing.edit("edit", text)
            return
        if not await self._editing.did(self._surgeon.open()):
            return
        rows = [Choice([(f"{kind:<18} ", "key"), (told, "")], kind) for kind, told, _ in self._surgeon.model.families()]
        self._page.choose("Which edit? (type to filter)", rows, self._family_picked, filterable=True)

    def _family_picked(self, picked: object) -> None:
        fields = {kind: fields for kind, _, fields in self._surgeon.model.families()}
        if picked in fields:
            kind = str(picked)
            has = " ".join(f"{name}=" for name in fields[kind]) or "needs nothing: enter"
            self._editing.prompt(f"edit {kind} ", f"{has}   tab completes")

    @command("surgery.repeat", "the last edit again, here", keys="full_stop", footer="again", line="again")
    async def repeat(self) -> None:
        last = self._state.surgery.last
        if last is None:
            self._state.say("nothing was edited yet that could be repeated")
        else:
            await self._editing.edit(*last)

    def _pick(self, title: str, verb: str, choices: Sequence[tuple[str, str, str]]) -> None:
        rows = [Choice([(f"{key}  ", "key"), (f"{word:<10} {told}", "")], word, key) for key, word, told in choices]

        async def picked(word: object) -> None:
            if isinstance(word, str):
                await self._editing.edit(verb, word)

        self._page.choose(title, rows, picked)

    async def _typed(self, verb: str, text: str, start: str = "") -> None:
        """Edit by what was typed, or ask for it."""
        if text:
            await self._editing.edit(verb, text)
        else:
            self._editing.prompt(f"{verb} {start}", HINTS.get(verb, "tab completes"))


class EditHistory(EditGroup, scope="surgery"):
    """Back and forth in the history of edits, and along the edges with other keys than in the Graph screen."""

    def __init__(self, editing: Editing, jumps: Jumps) -> None:
        super().__init__(editing)
        self._jumps = jumps

    @command("surgery.undo", "undo the last edit", keys="u", footer="undo", line="undo")
    async def undo(self) -> None:
        if self._editing.is_free():
            await self._editing.did(self._surgeon.leave() if self._state.surgery.preview else self._surgeon.undo())

    @command("surgery.redo", "redo", keys="ctrl+r", line="redo")
    async def redo(self) -> None:
        if self._editing.is_free():
            await self._editing.did(self._surgeon.redo())

    @command("surgery.history", "the history of edits, to walk and branch", keys="H", footer="history", line="history")
    async def show_history(self) -> None:
        if await self._editing.did(self._surgeon.open()):
            self._page.open("history")

    @command("surgery.producer", "jump to a producer (parent)", keys="less_than_sign")
    def to_producer(self) -> None:
        self._jumps.producer()

    @command("surgery.consumer", "jump to a consumer (child)", keys="greater_than_sign")
    def to_consumer(self) -> None:
        self._jumps.consumer()
