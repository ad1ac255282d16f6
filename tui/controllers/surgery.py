"""Surgery: edits looked at, made, undone and saved, without a wait on the app's own loop."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from backends.errors import LayerwiseError, UsageError
from backends.text import shown
from tui.controllers.warm import warm_worker
from tui.presenters.bars import size_text
from tui.state.shared import AppState
from tui.state.surgery import Check, Ghost, SurgeryState

if TYPE_CHECKING:
    from surgery.graph import GraphIndex
    from tui.controllers.edit_desk import EditDesk

P = ParamSpec("P")
T = TypeVar("T")


class SurgeryController:
    """The desk in a thread of its own, the warm worker, and the state that the screens show."""

    def __init__(self, state: AppState) -> None:
        self._app = state
        self._state: SurgeryState = state.surgery
        self._thread = ThreadPoolExecutor(1, "surgery")
        self._desk: EditDesk | None = None
        self._groups: dict[int, int] = {}
        self._opening = asyncio.Lock()
        kept = state.session.forms.get("surgery") or {}
        if isinstance(kept, dict):
            self._groups = {int(last): int(first) for last, first in dict(kept.get("groups", {})).items()}
            self._state.saved = int(kept.get("written", 0))
        self._state.session.on_saved_change.subscribe(self.remember)

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
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ── opening ──

    async def open(self) -> bool:
        """Read the model's structure and its history; false, and said, where that fails or there is no index yet."""
        async with self._opening:
            index, model = self._app.session.index, self._app.session.model
            if self._desk is not None or index is None or model is None:
                return self._desk is not None
            try:
                self._desk = await self.run(_open_desk, model, index, self._app.workspace.root)
                await self.show()
            except LayerwiseError as error:
                self._app.say(str(error), "bad")
            return self._desk is not None

    async def show(self) -> None:
        """Show the head of the history; a state that an edit no longer makes gives way to the file."""
        desk, state = self.desk, self._state
        try:
            overlay = await self.run(desk.overlay)
        except LayerwiseError as error:
            self._app.say(f"{error}; the file is shown as it is", "bad")
            overlay = await self.run(desk.overlay, 0)
        state.steps, state.head, state.overlay = desk.steps(), desk.history.at, overlay
        state.opened, state.ghost, state.check = True, None, None
        self._set_index(overlay)
        self.remember()

    def _set_index(self, overlay: Any) -> None:
        self._state.session.set_index(overlay)
        self._state.on_change.emit()

    def remember(self) -> None:
        """Keep cursor, marks and filter of the edited graph, and which edits were made by one key, over a restart."""
        form = {
            "saved": msgspec.to_builtins(self._state.session.saved()),
            "groups": {str(last): first for last, first in self._groups.items()},
            "written": self._state.saved,
        }
        self._app.session.remember("surgery", form=form)

    # ── a change ──

    async def attempt(self, edits: Sequence[Any]) -> Ghost:
        """Show what edits would make of the head. EditError where one does not fit."""
        desk = self.desk
        heavy = [edit for edit in edits if edit.heavy]
        if heavy:
            ghost = await self._attempt_elsewhere(desk, edits)
        else:
            ghost = await self.run(desk.attempt, edits)
        self._state.ghost, self._state.check = ghost, None
        self._set_index(ghost.shown)
        return ghost

    async def _attempt_elsewhere(self, desk: "EditDesk", edits: Sequence[Any]) -> Ghost:
        """What needs an engine is made by the warm worker."""
        out = self._result_file
        await warm_worker(self._app).ask("edit_result", {**self._place(), "edits": _plain(edits), "out": str(out)})
        return await self.run(desk.attempt_result, edits, out)

    @property
    def _result_file(self) -> Path:
        return self._app.workspace.root / "edits" / f"waiting-{id(self)}.structure"

    def _place(self) -> dict[str, Any]:
        history = self.desk.history
        return {"path": str(self._app.session.model), "log": str(history.path), "at": history.at}

    async def check(self) -> None:
        """Ask the worker whether the waiting change is sound, and which types it changes."""
        ghost = self._state.ghost
        if ghost is None:
            return
        params = {**self._place(), "edits": _plain(ghost.edits)}
        if any(edit.heavy for edit in ghost.edits):
            params["result"] = str(self._result_file)
        try:
            answer = await warm_worker(self._app).ask("edit_check", params)
            found = Check(answer["problems"], [(name, was, now) for name, was, now in answer["types"]])
        except LayerwiseError as error:
            found = Check(failed=shown(str(error), 300))
        if self._state.ghost is ghost:
            self._state.check = found
            self._state.on_change.emit()

    async def apply(self) -> None:
        """Make the change that waits."""
        ghost = self._state.ghost
        if ghost is None:
            return
        first, last = await self.run(self.desk.apply, ghost)
        if first != last:
            self._groups[last] = first
        await self.show()
        more = f" and {len(ghost.edits) - 1} more" if len(ghost.edits) > 1 else ""
        self._app.say(f"#{last} {ghost.edits[0].describe()}{more}; u takes it back", "good")

    async def leave(self) -> None:
        """Forget the change that waits."""
        if self._state.ghost is not None:
            await self.show()

    # ── history ──

    async def undo(self) -> None:
        """Back by what one key made. UsageError at the file."""
        history = self.desk.history
        if history.at == 0:
            raise UsageError("there is nothing to undo")
        text = history.entries[history.at].edit.describe()
        first = self._groups.get(history.at, history.at)
        await self.go(history.entries[first].parent if first in history.entries else 0)
        self._app.say(f"undone: {text}; ctrl+r makes it again")

    async def redo(self) -> None:
        """Forward by what one key made, on the branch that was last left. UsageError at its end."""
        entry = self.desk.history.next
        if entry is None:
            raise UsageError("there is nothing to redo")
        last = next((last for last, first in self._groups.items() if first == entry.id), entry.id)
        await self.go(last if last in self.desk.history.entries else entry.id)
        self._app.say(f"again: {entry.edit.describe()}")

    async def go(self, number: int) -> None:
        """To any state of the history."""
        await self.run(self.desk.go, number)
        await self.show()

    # ── files ──

    async def write(self, path: Path, overwrite: bool) -> None:
        """Save the head. UsageError if a file is there already and may not be replaced, or it is the open model."""
        model = self._app.session.model
        if model is not None and path.exists() and path.samefile(model):
            raise UsageError("that is the open model, and its weights are read from it: write to another name")
        size = await self.run(self.desk.write, path, overwrite)
        self._state.saved, self._state.saved_as = self.desk.history.at, path
        self._state.on_change.emit()
        self.remember()
        self._app.say(f"written: {shown(str(path))}, {size_text(size)}; :open {shown(str(path))} shows it", "good")


def _open_desk(model: Path, index: "GraphIndex", root: Path) -> "EditDesk":
    """In the thread: what edits need is imported there, too."""
    from tui.controllers.edit_desk import EditDesk

    return EditDesk(model, index, root)


def _plain(edits: Sequence[Any]) -> list[Any]:
    return [msgspec.to_builtins(edit) for edit in edits]
