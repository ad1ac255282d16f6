"""Surgery: edits looked at, made, undone and saved, without a wait on the app's own loop."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from backends.errors import LayerwiseError, UsageError
from backends.text import shown
from tui.controllers.opening import graph_index
from tui.controllers.warm import warm_worker
from tui.presenters.surgery_status import misfit_text
from tui.state.changes import Sides
from tui.state.shared import AppState
from tui.state.surgery import Check, Ghost, SurgeryState

if TYPE_CHECKING:
    from surgery.graph import GraphIndex
    from surgery.graph.overlay import Overlay
    from tui.controllers.edit_desk import EditDesk

P = ParamSpec("P")
T = TypeVar("T")
Misfits = Sequence[tuple[Any, str]]
"""Edits that do not fit, each with the reason."""


def surgeon(state: AppState) -> "SurgeryController":
    """The one controller of the edited model."""
    if not isinstance(state.surgery.controller, SurgeryController):
        state.surgery.controller = SurgeryController(state)
    return state.surgery.controller


class SurgeryController:
    """The desk in a thread of its own, the warm worker, and the state that the screens show.

    app: the state of all screens; state: that of surgery.
    """

    def __init__(self, state: AppState) -> None:
        self.app = state
        self.state: SurgeryState = state.surgery
        self._thread = ThreadPoolExecutor(1, "surgery")
        self._desk: EditDesk | None = None
        self._asked: Overlay | None = None
        self._groups: dict[int, int] = {}
        self._opening = asyncio.Lock()
        kept = state.session.forms.get("surgery") or {}
        if isinstance(kept, dict):
            self._groups = {int(last): int(first) for last, first in dict(kept.get("groups", {})).items()}
            self.state.saved = int(kept.get("written", 0))
            last = kept.get("last")
            self.state.last = (str(last[0]), str(last[1])) if isinstance(last, list) and len(last) > 1 else None
        self.state.session.on_saved_change.subscribe(self.remember)

    @property
    def desk(self) -> "EditDesk":
        """The open model. UsageError before that."""
        if self._desk is None:
            raise UsageError("the model is not open yet")
        return self._desk

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in the desk's thread, after all that was asked of it before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Let the thread end."""
        with suppress(OSError):
            self._result_file.unlink(missing_ok=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ── opening ──

    async def open(self) -> bool:
        """Read the model's structure and its history; false, and said, where that fails or there is no index yet."""
        async with self._opening:
            index, model = self.app.session.index, self.app.session.model
            if self._desk is not None or index is None or model is None:
                return self._desk is not None
            if self.state.session.node < index.n_nodes:  # else it is on a node that an edit made
                self.state.session.set_index(index)
            try:
                self._desk = await self.run(_open_desk, model, index, self.app.workspace.root)
                await self.show()
            except LayerwiseError as error:
                self.app.say(str(error), "bad")
            return self._desk is not None

    async def warm(self) -> None:
        """Open, and have ready what the first edit and its check need."""
        if await self.open():
            await self.run(self.desk.warm)
            with suppress(LayerwiseError):
                out = self._result_file.with_suffix(".types")
                await warm_worker(self.app).ask("edit_types", {**self.place(), "out": str(out)})
                await self.run(self.desk.learn_types, out)

    async def show(self) -> None:
        """Show the head of the history; a state that an edit no longer makes gives way to the file."""
        try:
            overlay = await self.run(self.desk.overlay)
        except LayerwiseError as error:
            self.app.say(f"{error}; the file is shown as it is", "bad")
            overlay = await self.run(self.desk.overlay, 0)
        self._show(overlay)

    def _show(self, overlay: "Overlay") -> None:
        desk, state = self.desk, self.state
        overlay.n_nodes = overlay.ground.n_nodes  # the cursor may be on a node of a state that is left
        state.steps, state.head, state.overlay = desk.steps(), desk.history.at, overlay
        state.opened, state.ghost, state.check = True, None, None
        self._set_index(overlay)
        self.remember()

    def _set_index(self, overlay: Any) -> None:
        self.state.session.set_index(overlay)
        self.state.on_change.emit()

    def remember(self) -> None:
        """Keep cursor, marks and filter of the edited graph, and which edits were made by one key, over a restart."""
        form = {
            "saved": msgspec.to_builtins(self.state.session.saved()),
            "groups": {str(last): first for last, first in self._groups.items()},
            "written": self.state.saved,
            "last": self.state.last,
        }
        self.app.session.remember("surgery", form=form)

    # ── a change ──

    async def propose(self, verb: str, text: str, nodes: Sequence[int]) -> tuple[list[Any], bool]:
        """Show what a line would make of the head; returns the edits that it means, and whether it is shown.

        It is not where they need an engine: `attempt` them. UsageError, EditError.
        """
        edits, ghost = await self.run(self.desk.propose, verb, text, nodes)
        if ghost is not None:
            self._show_ghost(ghost)
        return edits, ghost is not None

    async def attempt(self, edits: Sequence[Any]) -> Ghost:
        """Show what edits would make of the head. EditError where one does not fit."""
        if any(edit.heavy for edit in edits):
            await self._make_elsewhere(edits)
            ghost = await self.run(self.desk.attempt_result, edits, self._result_file)
        else:
            ghost = await self.run(self.desk.attempt, edits)
        self._show_ghost(ghost)
        return ghost

    async def attempt_fitting(self, edits: Sequence[Any]) -> Misfits:
        """As `attempt`, without the edits that do not fit; returns these. UsageError if none fits."""
        heavy = any(edit.heavy for edit in edits)
        if heavy:
            kept, misfits = await self._make_elsewhere(edits, skip_misfits=True)
        else:
            kept, misfits = await self.run(self.desk.fitting, edits)
        if not kept:
            raise UsageError(f"none of its edits fits: {misfit_text(*misfits[0])}" if misfits else "no edit is in it")
        made = (self.desk.attempt_result, kept, self._result_file) if heavy else (self.desk.attempt, kept)
        self._show_ghost(await self.run(*made))
        return misfits

    def _show_ghost(self, ghost: Ghost) -> None:
        self.state.ghost, self.state.check = ghost, None
        self._set_index(ghost.shown)

    async def _make_elsewhere(self, edits: Sequence[Any], *, skip_misfits: bool = False) -> tuple[list[Any], Misfits]:
        """What needs an engine is made by the warm worker; returns the edits it made, and those that do not fit."""
        out = {"out": str(self._result_file), "skip_misfits": skip_misfits}
        answer = await warm_worker(self.app).ask("edit_result", {**self.place(), "edits": _plain(edits), **out})
        reasons = dict(answer["misfits"])
        kept = [edit for place, edit in enumerate(edits) if place not in reasons]
        return kept, [(edits[place], reason) for place, reason in reasons.items()]

    @property
    def _result_file(self) -> Path:
        return self.app.workspace.root / "edits" / f"waiting-{os.getpid()}.structure"

    def place(self) -> dict[str, Any]:
        """Where the worker finds the head."""
        history = self.desk.history
        return {"path": str(self.app.session.model), "log": str(history.path), "at": history.at}

    async def check(self) -> None:
        """Ask the worker whether the waiting change is sound, and which types it changes."""
        ghost = self.state.ghost
        if ghost is None:
            return
        await self.run(self.desk.follow, ghost)
        made: dict[str, Any] = {"edits": _plain(ghost.edits)}
        if any(edit.heavy for edit in ghost.edits):
            made = {"result": str(self._result_file)}
        found = await self._ask_check({**self.place(), **made}, ghost.after)
        if self.state.ghost is ghost:
            self.state.check = found
            self.state.on_change.emit()

    async def _ask_check(self, params: dict[str, Any], overlay: "Overlay") -> Check:
        """What the worker says of a state; types that it knows better are taken over."""
        try:
            answer = await warm_worker(self.app).ask("edit_check", params)
        except LayerwiseError as error:
            return Check(failed=shown(str(error), 300))
        for name, (dtype, shape) in answer["known"].items():
            overlay.types[name] = dtype, None if shape is None else tuple(shape)
        self.state.on_change.emit()
        return Check(answer["problems"], [(name, was, now) for name, was, now in answer["types"]])

    async def check_head(self) -> None:
        """Ask what the head's new tensors are, once for each state."""
        overlay = self.state.overlay
        if overlay is not None and overlay.own and not overlay.types and overlay is not self._asked:
            self._asked = overlay
            params = {**self.place(), "at": 0, "to": self.desk.history.at}
            await self._ask_check(params, overlay)

    @property
    def slow_to_apply(self) -> bool:
        """Whether the change that waits is made of several edits that the worker has to make one after the other."""
        edits = self.state.ghost.edits if self.state.ghost is not None else ()
        return len(edits) > 1 and any(edit.heavy for edit in edits)

    async def apply(self) -> None:
        """Make the change that waits."""
        ghost = self.state.ghost
        if ghost is None:
            return
        if self.slow_to_apply:
            first, last = await self._apply_one_by_one(ghost.edits)
        else:
            first, last = await self.run(self.desk.apply, ghost)
        if first != last:
            self._groups[last] = first
        self._show(await self.run(self.desk.overlay) if self.state.ghost is not ghost else ghost.after)
        self.app.say(f"made, as edit {last}: {ghost.edits[-1].describe()}; u takes it back", "good")

    async def _apply_one_by_one(self, edits: Sequence[Any]) -> tuple[int, int]:
        """What needs an engine is made by the worker, each in its turn; all of them, or none."""
        start, made = self.desk.history.at, []
        try:
            for edit in edits:
                one = await self.attempt([edit])
                made.append((await self.run(self.desk.apply, one))[1])
        except LayerwiseError:
            await self.go(start)
            raise
        return made[0], made[-1]

    async def leave(self) -> None:
        """Forget the change that waits."""
        if self.state.ghost is not None and self.state.overlay is not None:
            self._show(self.state.overlay)

    # ── history ──

    async def undo(self) -> None:
        """Back by what one key made. UsageError at the file."""
        history = self.desk.history
        if history.at == 0:
            raise UsageError("there is nothing to undo")
        text = history.entries[history.at].edit.describe()
        first = self._groups.get(history.at, history.at)
        await self.go(history.entries[first].parent if first in history.entries else 0)
        self.app.say(f"undone: {text}; ctrl+r makes it again")

    async def redo(self) -> None:
        """Forward by what one key made, on the branch that was last left. UsageError at its end."""
        entry = self.desk.history.next
        if entry is None:
            raise UsageError("there is nothing to redo")
        last = next((last for last, first in self._groups.items() if first == entry.id), entry.id)
        await self.go(last if last in self.desk.history.entries else entry.id)
        self.app.say(f"again: {entry.edit.describe()}")

    async def between(self, one: int, other: int) -> Ghost:
        """What lies between two states."""
        return await self.run(self.desk.between, one, other)

    async def compare(self, one: int, other: int) -> None:
        """Put two states side by side, for the Changes screen."""
        self._compared(await self.run(self.desk.states, one, other))

    async def compare_model(self, path: Path) -> None:
        """Put the head beside another model. BadFile if it cannot be read."""
        index = await graph_index(self.app, path)
        self._compared(await self.run(self.desk.beside, index, path))

    def _compared(self, sides: Sides) -> None:
        self.state.compared = sides
        self.state.on_change.emit()

    async def go(self, number: int) -> None:
        """To any state of the history."""
        self._show(await self.run(self.desk.go, number))


def _open_desk(model: Path, index: "GraphIndex", root: Path) -> "EditDesk":
    """In the thread: what edits need is imported there, too."""
    from tui.controllers.edit_desk import EditDesk

    return EditDesk(model, index, root)


def _plain(edits: Sequence[Any]) -> list[Any]:
    return [msgspec.to_builtins(edit) for edit in edits]
