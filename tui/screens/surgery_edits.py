"""The commands of Surgery that edit: the node under the cursor or all marked ones, and the history of edits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from textual.events import Key

from layerwise._tool.tui.commands import REGISTRY, Command, command, in_scopes
from layerwise._tool.tui.presenters.text import wrap_runs
from layerwise._tool.tui.screens.chooser import Choice, chooser_cells
from layerwise._tool.tui.screens.editing import EditGroup

HINTS = {
    "insert": "OP [name=value] [with TENSOR|NUMBER] [before | on TENSOR]   tab completes",
    "replace": "OP [name=value] [with TENSOR|NUMBER]   tab completes",
    "op": "another operator, all else stays   tab completes",
    "attr": "NAME=VALUE, NAME= removes it   tab completes",
    "rename": "the node's new name",
    "rename-tensor": "[TENSOR] NEW   tab completes",
    "edit": "KIND field=value   tab completes",
}
_KIND = 18  # cells of the name of a kind of edit
LOW = (("f", "float16", ""), ("b", "bfloat16", ""))
PARTS = (
    ("a", "alone", "these nodes alone"), ("n", "around 1", "with their neighbours"),
    ("t", "to", "from the inputs to here"), ("f", "from", "from here to the outputs"),
)  # fmt: skip


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

    def footer_keys(self) -> list[Command]:
        """One key for all of them: what follows it is shown once it is pressed."""
        return [EDITS]

    @command("surgery.edits", "the edits: a list to choose from", line="edits")
    def show_edits(self) -> None:
        edits = [found for found in in_scopes(("surgery",)) if found.keys.startswith("e ")]
        rows = [Choice([(f"{found.keys[2:]}  ", "key"), (found.title, "")], found, found.keys[2:]) for found in edits]
        self._page.choose("Which edit?", rows, lambda found: getattr(self, found.method)())

    @command("surgery.delete", "delete, and reconnect around it", keys="e d", footer="delete", line="delete [NODE…]")
    async def delete(self, text: str = "") -> None:
        await self._editing.edit("delete", text)

    @command("surgery.insert", "insert a node after it, before it or on a tensor", keys="e i", footer="insert",
             line="insert OP …")  # fmt: skip
    async def insert(self, text: str = "") -> None:
        await self._typed("insert", text)

    @command("surgery.replace", "replace it by another node", keys="e r", footer="replace", line="replace OP …")
    async def replace_node(self, text: str = "") -> None:
        await self._typed("replace", text)

    @command("surgery.attribute", "change an attribute", keys="e a", footer="attribute", line="attr NAME=VALUE")
    async def attribute(self, text: str = "") -> None:
        await self._typed("attr", text)

    @command("surgery.extract", "extract a part as the model", keys="e x", footer="extract", line="extract PART")
    async def extract(self, text: str = "") -> None:
        if text:
            await self._editing.edit("extract", text)
        else:
            self._pick("Extract which part?", "extract", PARTS)

    @command("surgery.rename", "rename the node", keys="e n", footer="rename", line="rename NAME")
    async def rename(self, text: str = "") -> None:
        await self._typed("rename", text, self._editing.name())

    @command("surgery.rename_tensor", "rename a tensor, the node's first output by default",
             line="rename-tensor [TENSOR] NAME")  # fmt: skip
    async def rename_tensor(self, text: str = "") -> None:
        await self._typed("rename-tensor", text)

    @command("surgery.output", "make what it makes graph outputs, or end that", keys="e o", footer="output",
             line="output [TENSOR…]")  # fmt: skip
    async def output(self, text: str = "") -> None:
        await self._editing.edit("output", text)

    @command("surgery.fold", "fold all constants", keys="e f", footer="fold", line="fold [BYTES]")
    async def fold(self, text: str = "") -> None:
        await self._editing.edit("fold", text)

    @command("surgery.precision", "compute it in FP16 or bfloat16, with casts around it", keys="e p",
             footer="precision", line="precision TYPE")  # fmt: skip
    async def precision(self, text: str = "") -> None:
        if text:
            await self._editing.edit("precision", text)
        else:
            self._pick("Compute in which precision?", "precision", LOW)

    @command("surgery.op", "change its operator, all else stays", line="op OP")
    async def change_op(self, text: str = "") -> None:
        await self._typed("op", text)

    @command("surgery.any", "any other edit: shapes, opset, weights, patterns, clean up …", keys="e e", footer="more",
             line="edit KIND …")  # fmt: skip
    async def any_edit(self, text: str = "") -> None:
        if text:
            await self._editing.edit("edit", text)
            return
        if not await self._editing.did(self._surgeon.open()):
            return
        cells = chooser_cells(self._page.app.size.width)
        rows = [
            Choice(line, (kind, fields), more=more)
            for kind, told, fields in self._surgeon.model.families()
            for line, *more in [wrap_runs([(f"{kind:<{_KIND}} ", "key"), (told, "")], cells, _KIND + 1)]
        ]
        self._page.choose("Which edit? (type to filter)", rows, self._family_picked, filterable=True)

    def _family_picked(self, family: tuple[str, list[str]]) -> None:
        kind, fields = family
        has = " ".join(f"{name}=" for name in fields) or "needs nothing: enter"
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
        self._page.choose(title, rows, partial(self._editing.edit, verb))

    async def _typed(self, verb: str, text: str, start: str = "") -> None:
        """Edit by what was typed, or ask for it."""
        if text:
            await self._editing.edit(verb, text)
        else:
            self._editing.prompt(f"{verb} {start}", HINTS.get(verb, "tab completes"))


EDITS = replace(REGISTRY["surgery.edits"], keys="e", footer="edit …", line="")


class EditHistory(EditGroup, scope="surgery"):
    """Back and forth in the history of edits."""

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
