"""Edits by single keys: of the node under the cursor, or of all marked ones."""

from collections.abc import Sequence

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.shell import shell_word
from layerwise._tool.tui.commands import Command, command
from layerwise._tool.tui.screens.pick import Choice, PickScreen
from layerwise._tool.tui.screens.surgery_base import SurgeryBase
from layerwise._tool.tui.widgets.bars import CommandBar

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


class SurgeryEdits(SurgeryBase, scope="surgery"):
    """Every key of an edit is a line of the `:` prompt too; nothing is changed before enter on what it would do."""

    # ── edits ──

    @command("surgery.delete", "delete, and reconnect around it", keys="d", footer="delete", line="delete [NODE…]")
    async def delete(self, text: str = "") -> None:
        await self.edit("delete", text)

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
            await self.edit("extract", text)
        else:
            self._pick("Extract which part?", "extract", PARTS)

    @command("surgery.rename", "rename the node", keys="R", footer="rename", line="rename NAME")
    async def rename(self, text: str = "") -> None:
        nodes = self._chosen()
        await self._typed("rename", text, shell_word(self._control.index.node_name(nodes[0])) if nodes else "")

    @command("surgery.rename_tensor", "rename a tensor, the node's first output by default",
             line="rename-tensor [TENSOR] NAME")  # fmt: skip
    async def rename_tensor(self, text: str = "") -> None:
        await self._typed("rename-tensor", text)

    @command("surgery.output", "make what it makes graph outputs, or end that", keys="o", footer="output",
             line="output [TENSOR…]")  # fmt: skip
    async def output(self, text: str = "") -> None:
        await self.edit("output", text)

    @command("surgery.fold", "fold all constants", keys="f", footer="fold", line="fold [BYTES]")
    async def fold(self, text: str = "") -> None:
        await self.edit("fold", text)

    @command("surgery.precision", "compute it in FP16 or bfloat16, with casts around it", keys="p", footer="precision",
             line="precision TYPE")  # fmt: skip
    async def precision(self, text: str = "") -> None:
        if text:
            await self.edit("precision", text)
        else:
            self._pick("Compute in which precision?", "precision", LOW)

    @command("surgery.op", "change its operator, all else stays", line="op OP")
    async def change_op(self, text: str = "") -> None:
        await self._typed("op", text)

    @command("surgery.any", "any other edit: shapes, opset, weights, patterns, clean up …", keys="e", footer="more",
             line="edit KIND …")  # fmt: skip
    async def any_edit(self, text: str = "") -> None:
        if text:
            await self.edit("edit", text)
            return
        if not await self._did(self._surgeon.open()):
            return
        rows = [Choice([(f"{kind:<18} ", "key"), (told, "")], kind) for kind, told, _ in self._surgeon.desk.families()]
        self.app.push_screen(PickScreen("Which edit? (type to filter)", rows, self.state.glyphs, filterable=True),
                             self._family_picked)  # fmt: skip

    def _family_picked(self, picked: object) -> None:
        fields = {kind: fields for kind, _, fields in self._surgeon.desk.families()}
        if picked in fields:
            kind = str(picked)
            has = " ".join(f"{name}=" for name in fields[kind]) or "needs nothing: enter"
            self._prompt(f"edit {kind} ", f"{has}   tab completes")

    @command("surgery.repeat", "the last edit again, here", keys="full_stop", footer="again", line="again")
    async def repeat(self) -> None:
        last = self.state.surgery.last
        if last is None:
            self.state.say("nothing was edited yet that could be repeated")
        else:
            await self.edit(*last)

    # ── history ──

    @command("surgery.undo", "undo the last edit", keys="u", footer="undo", line="undo")
    async def undo(self) -> None:
        if self._is_free():
            await self._did(self._surgeon.leave() if self.state.surgery.ghost else self._surgeon.undo())

    @command("surgery.redo", "redo", keys="ctrl+r", line="redo")
    async def redo(self) -> None:
        if self._is_free():
            await self._did(self._surgeon.redo())

    @command("surgery.history", "the history of edits, to walk and branch", keys="H", footer="history", line="history")
    async def show_history(self) -> None:
        if await self._did(self._surgeon.open()):
            self.post_message(self.Open("history"))

    @command("surgery.producer", "jump to a producer (parent)", keys="less_than_sign")
    def to_producer(self) -> None:
        self.producer()

    @command("surgery.consumer", "jump to a consumer (child)", keys="greater_than_sign")
    def to_consumer(self) -> None:
        self.consumer()

    # ── from a key to a change on view ──

    def _pick(self, title: str, verb: str, choices: Sequence[tuple[str, str, str]]) -> None:
        rows = [Choice([(f"{key}  ", "key"), (f"{word:<10} {told}", "")], word, key) for key, word, told in choices]

        async def picked(word: object) -> None:
            if isinstance(word, str):
                await self.edit(verb, word)

        self.app.push_screen(PickScreen(title, rows, self.state.glyphs), picked)

    def _prompt(self, text: str, hint: str) -> None:
        """Open the `:` line at once: what is typed ahead belongs there."""
        self.app.query_one(CommandBar).ask(text, hint)

    async def _typed(self, verb: str, text: str, start: str = "") -> None:
        """Edit by what was typed, or ask for it."""
        if text:
            await self.edit(verb, text)
        else:
            self._prompt(f"{verb} {start}", HINTS.get(verb, "tab completes"))

    async def edit(self, verb: str, text: str) -> None:
        """Show what an edit of the chosen nodes would do. What does not fit is said."""
        if not self._is_free():
            return
        try:
            await self._surgeon.open()
            await self._surgeon.leave()
            self._settle_cursor()
            edits, shown = await self._surgeon.propose(verb, text, self._chosen())
        except LayerwiseError as error:
            self._refused(error)
            return
        self.state.surgery.last = (verb, "" if verb == "delete" else text)
        if shown:
            self.state.say("")
            self._show_change()
        else:
            self.busy = True
            self.state.say(f"{edits[0].describe()}: the worker computes it …")
            self.run_work("surgery-edit", lambda: self._attempt(edits))

    async def _attempt(self, edits: Sequence[object]) -> None:
        done = await self._did(self._surgeon.attempt(edits))
        self.busy = False
        if done:
            self.state.say("")
            self._show_change()

    def _show_change(self) -> None:
        """Put the cursor on a node that changes, and let the worker look at the result."""
        ghost = self.state.surgery.ghost
        touched = ghost.nodes() if ghost is not None else []
        if touched and self._rows.node_at(self._list.cursor) not in touched:
            self.session.select_node(touched[0])
        self.call_after_refresh(self.run_latest, "surgery-check", self._surgeon.check)

    def _chosen(self) -> list[int]:
        """The marked nodes, else those of the row under the cursor."""
        overlay = self.state.surgery.overlay
        if overlay is None:
            return []
        tensors = [overlay.find_tensor(name) for name in self.session.marks]
        marked = {overlay.producer(tensor) for tensor in tensors if tensor >= 0} - {-1}
        if marked:
            return [node for node in overlay.order.tolist() if node in marked]
        return self._rows.nodes_at(self._list.cursor) if len(self._rows) else []

    # ── completion ──

    def completions(self, found: Command, prefix: str) -> list[str]:
        if found.scope != "surgery":
            return super().completions(found, prefix)
        try:
            return self._surgeon.desk.complete(found.verb, prefix, self._chosen())
        except LayerwiseError:
            return []
