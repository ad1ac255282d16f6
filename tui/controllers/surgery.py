"""Surgery: edits looked at, made, undone and saved, without a wait on the app's own loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import counted, shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.tui.controllers.opening import graph_index
from layerwise._tool.tui.controllers.surgery_open import OpenSurgery
from layerwise._tool.tui.presenters.surgery import effect_text, misfit_text
from layerwise._tool.tui.state.surgery import Check, Preview, Sides

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph.overlay import Overlay

Misfits = Sequence[tuple[Any, str]]
"""Edits that do not fit, each with the reason."""


class SurgeryController(OpenSurgery):
    """Changes of the open model, looked at and made, with the help of the warm worker; its history."""

    _asked: "Overlay | None" = None

    # ── a change ──

    async def propose(self, verb: str, text: str, nodes: Sequence[int]) -> tuple[list[Any], bool]:
        """Show what a line would make of the head; returns the edits that it means, and whether it is shown.

        It is not where they need an engine: `attempt` them. UsageError, EditError.
        """
        edits, preview = await self.run(self.model.propose, verb, text, nodes)
        if preview is not None:
            self._show_preview(preview)
        return edits, preview is not None

    async def attempt(self, edits: Sequence[Any]) -> Preview:
        """Show what edits would make of the head. EditError where one does not fit."""
        if any(edit.heavy for edit in edits):
            await self._make_elsewhere(edits)
            preview = await self.run(self.model.attempt_result, edits, self.result_file)
        else:
            preview = await self.run(self.model.attempt, edits)
        self._show_preview(preview)
        return preview

    async def attempt_fitting(self, edits: Sequence[Any]) -> Misfits:
        """As `attempt`, without the edits that do not fit; returns these. UsageError if none fits."""
        heavy = any(edit.heavy for edit in edits)
        if heavy:
            kept, misfits = await self._make_elsewhere(edits, skip_misfits=True)
        else:
            kept, misfits = await self.run(self.model.fitting, edits)
        if not kept:
            raise UsageError(f"none of its edits fits: {misfit_text(*misfits[0])}" if misfits else "no edit is in it")
        made = (self.model.attempt_result, kept, self.result_file) if heavy else (self.model.attempt, kept)
        self._show_preview(await self.run(*made))
        return misfits

    def _show_preview(self, preview: Preview) -> None:
        self.state.preview, self.state.check = preview, None
        self.set_index(preview.shown)

    async def _make_elsewhere(self, edits: Sequence[Any], *, skip_misfits: bool = False) -> tuple[list[Any], Misfits]:
        """What needs an engine is made by the warm worker; returns the edits it made, and those that do not fit."""
        out = {"out": str(self.result_file), "skip_misfits": skip_misfits}
        answer = await self.warm_worker.ask("edit_result", {**self.place(), "edits": _plain(edits), **out})
        reasons = dict(answer["misfits"])
        kept = [edit for place, edit in enumerate(edits) if place not in reasons]
        return kept, [(edits[place], reason) for place, reason in reasons.items()]

    async def check(self) -> None:
        """Ask the worker whether the waiting change is sound, and which types it changes."""
        preview = self.state.preview
        if preview is None:
            return
        await self.run(self.model.follow, preview)
        made: dict[str, Any] = {"edits": _plain(preview.edits)}
        if any(edit.heavy for edit in preview.edits):
            made = {"result": str(self.result_file)}
        found = await self._ask_check({**self.place(), **made}, preview.after)
        if self.state.preview is preview:
            self.state.check = found
            self.state.on_change.emit()

    async def _ask_check(self, params: dict[str, Any], overlay: "Overlay") -> Check:
        """What the worker says of a state; types that it knows better are taken over."""
        try:
            answer = await self.warm_worker.ask("edit_check", params)
        except LayerwiseError as error:
            return Check(failed=in_words(error))
        for name, (dtype, shape) in answer["known"].items():
            overlay.types[name] = dtype, None if shape is None else tuple(shape)
        self.state.on_change.emit()
        return Check(answer["problems"], [(name, was, now) for name, was, now in answer["types"]])

    @property
    def head_to_check(self) -> "Overlay | None":
        """The head, if it has new tensors of which nobody has asked what they are."""
        overlay = self.state.overlay
        asks = overlay is not None and overlay.own and not overlay.types and overlay is not self._asked
        return overlay if asks else None

    async def check_head(self) -> None:
        """Ask what the head's new tensors are, once for each state."""
        overlay = self.head_to_check
        if overlay is not None:
            self._asked = overlay
            params = {**self.place(), "at": 0, "to": self.model.history.at}
            await self._ask_check(params, overlay)

    @property
    def slow_to_apply(self) -> bool:
        """Whether the change that waits is made of several edits that the worker has to make one after the other."""
        edits = self.state.preview.edits if self.state.preview is not None else ()
        return len(edits) > 1 and any(edit.heavy for edit in edits)

    async def apply(self) -> None:
        """Make the change that waits."""
        preview = self.state.preview
        if preview is None:
            return
        if self.slow_to_apply:
            first, last = await self._apply_one_by_one(preview.edits)
        else:
            first, last = await self.run(self.model.apply, preview)
        if first != last:
            self.groups[last] = first
        self.state.last = self.state.proposed or self.state.last
        self.show_state(await self.run(self.model.overlay) if self.state.preview is not preview else preview.after)
        self.app.say(f"made, as edit {last}: {preview.edits[-1].describe()}; u takes it back", "good")

    async def head_check(self) -> Check:
        """What the worker says of the head, compared with the file."""
        params = {**self.place(), "at": 0, "to": self.model.history.at}
        try:
            return Check((await self.warm_worker.ask("edit_check", params))["problems"])
        except LayerwiseError as error:
            return Check(failed=shown(str(error), 300))

    async def _apply_one_by_one(self, edits: Sequence[Any]) -> tuple[int, int]:
        """What needs an engine is made by the worker, each in its turn; all of them, or none."""
        start, made = self.model.history.at, []
        try:
            for edit in edits:
                one = await self.attempt([edit])
                made.append((await self.run(self.model.apply, one))[1])
        except LayerwiseError:
            await self.go(start)
            raise
        return made[0], made[-1]

    async def leave(self) -> None:
        """Forget the change that waits."""
        if self.state.preview is not None and self.state.overlay is not None:
            self.show_state(self.state.overlay)

    # ── history ──

    async def undo(self) -> None:
        """Back by what one key made. UsageError at the file."""
        history = self.model.history
        if history.at == 0:
            raise UsageError("there is nothing to undo")
        text = history.entries[history.at].edit.describe()
        first = self.groups.get(history.at, history.at)
        await self.go(history.entries[first].parent if first in history.entries else 0)
        self.app.say(f"undone: {text}; ctrl+r makes it again")

    async def redo(self) -> None:
        """Forward by what one key made, on the branch that was last left. UsageError at its end."""
        entry = self.model.history.next
        if entry is None:
            raise UsageError("there is nothing to redo")
        last = next((last for last, first in self.groups.items() if first == entry.id), entry.id)
        await self.go(last if last in self.model.history.entries else entry.id)
        self.app.say(f"again: {entry.edit.describe()}")

    async def between(self, one: int, other: int) -> Preview:
        """What lies between two states."""
        return await self.run(self.model.between, one, other)

    async def compare(self, one: int, other: int) -> None:
        """Put two states side by side, for the Changes screen."""
        self._compared(await self.run(self.model.states, one, other))

    async def compare_model(self, path: Path) -> None:
        """Put the head beside another model. BadFile if it cannot be read."""
        index = await graph_index(self.app, path)
        self._compared(await self.run(self.model.beside, index, path))

    def _compared(self, sides: Sides) -> None:
        self.state.compared = sides
        self.state.on_change.emit()

    async def go(self, number: int) -> None:
        """To any state of the history."""
        self.show_state(await self.run(self.model.go, number))

    # ── files ──

    async def write(self, path: Path, overwrite: bool) -> None:
        """Save the head. UsageError if a file is there already and may not be replaced, or it is the open model."""
        model = self.app.session.model
        if model is not None and path.exists() and path.samefile(model):
            raise UsageError("that is the open model, and its weights are read from it: write to another name")
        params = {**self.place(), "out": str(path), "overwrite": overwrite}
        size = (await self.warm_worker.ask("edit_write", params))["size"]
        self.state.saved, self.state.saved_as = self.model.history.at, path
        self.state.on_change.emit()
        self.remember()
        self.app.say(f"written: {shown(str(path))}, {size_text(size)}; :open {shown(str(path))} shows it", "good")

    async def write_script(self, path: Path) -> None:
        """Write the edits as an onnx-graphsurgeon script. UsageError if a file is there already."""
        if path.exists():
            raise UsageError(f"{shown(str(path))} is there already: choose another name")
        await self.warm_worker.ask("edit_script", {**self.place(), "out": str(path)})
        self.app.say(f"written: {shown(str(path))}, {counted(self.state.edits, 'edit')} for onnx-graphsurgeon", "good")

    async def write_log(self, path: Path) -> None:
        """Write the edits as JSON, to replay them elsewhere. UsageError if a file is there already."""
        count = await self.run(self.model.write_log, path)
        how = "layerwise surgeon replay makes them elsewhere"
        self.app.say(f"written: {shown(str(path))}, {counted(count, 'edit')}; {how}", "good")

    async def replay(self, path: Path) -> None:
        """Show what the edits of a log make of the head; those that do not fit are named. BadFile, UsageError."""
        edits = await self.run(self.model.read_log, path)
        misfits = await self.attempt_fitting(edits)
        self.app.say("")
        if misfits:
            lost = f"{len(misfits)} of {len(edits)} edits do not fit and are left out: "
            self.app.say(lost + misfit_text(*misfits[0]), "warn")

    async def effect(self) -> str:
        """Run the file and the head on onnxruntime's CPU provider with one feed; says by how much outputs moved."""
        answer = await self.warm_worker.ask("edit_effect", {**self.place(), "at": 0, "to": self.place()["at"]})
        low = any(edit.__struct_config__.tag == "convert-precision" for edit in self.model.edits())
        return effect_text(answer) + ("; onnxruntime's CPU computes FP16 in FP32" if low else "")


def _plain(edits: Sequence[Any]) -> list[Any]:
    return [msgspec.to_builtins(edit) for edit in edits]
