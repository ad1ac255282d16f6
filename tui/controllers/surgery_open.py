"""Opening a model to edit it, and what the screens show of it."""

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.filesystem.temporary import TemporaryFolder
from layerwise._tool.tui.controllers.opening import WarmWorker
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.surgery import KeptEdits, SurgeryState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.surgery.graph.overlay import Overlay
    from layerwise._tool.tui.controllers.edited_model import EditedModel

P = ParamSpec("P")
T = TypeVar("T")


class OpenSurgery:
    """The edited model in a thread of its own, opened once, and what the screens show of it.

    app: the state of all screens; state: that of surgery.
    """

    def __init__(self, state: AppState, warm_worker: WarmWorker) -> None:
        self.app = state
        self.warm_worker = warm_worker
        self.state: SurgeryState = state.surgery
        self._thread = ThreadPoolExecutor(1, "surgery")
        self._model: EditedModel | None = None
        self._results: TemporaryFolder | None = None
        self._opening, self._warming = asyncio.Lock(), asyncio.Lock()
        self._unread = ""
        kept = KeptEdits.of(state.session)
        self.groups = dict(kept.groups)
        self.state.saved, self.state.last = kept.written, kept.last
        self.edits_before = kept.edits
        """How many edits the head had when the app ended before."""
        self.state.session.on_saved_change.subscribe(self.remember)

    @property
    def model(self) -> "EditedModel":
        """The open model. UsageError before that."""
        if self._model is None:
            raise UsageError(self.app.session.no_graph or self._unread or "the model is not open yet")
        return self._model

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in the edited model's thread, after all that was asked of it before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def close(self) -> None:
        """Let the thread end, and what the model takes be collected: another may be opened."""
        gc.unfreeze()
        if self._results is not None:
            self._results.discard()
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ── opening ──

    async def open(self) -> bool:
        """Read the model's structure and its history; false, and said, where that fails or there is no index yet."""
        async with self._opening:
            index, model = self.app.session.index, self.app.session.model
            if self._model is not None or index is None or model is None:
                return self._model is not None
            if self.state.session.node < index.n_nodes:  # else it is on a node that an edit made
                self.state.session.set_index(index)
            try:
                self._model = await self.run(_open_edited, model, index, self.app.workspace.root)
                await self.show()
            except LayerwiseError as error:
                self.state.opening, self._unread = "the model is not open", str(error)
                self.state.on_change.emit()
                self.app.say(str(error), "bad")
            return self._model is not None

    async def warm(self) -> None:
        """Open, and have ready what the first edit and its check need; once, whoever asks meanwhile."""
        if self._warming.locked():
            return
        async with self._warming:
            if await self.open():
                await self.run(self.model.warm)
                await self._learn_types()

    async def _learn_types(self) -> None:
        with suppress(LayerwiseError, OSError):
            out = self.result_file.with_suffix(".types")
            await self.warm_worker.ask("edit_types", {**self.place(), "out": str(out)})
            await self.run(self.model.learn_types, out)
            out.unlink()

    async def show(self) -> None:
        """Show the head of the history; a state that an edit no longer makes gives way to the file."""
        try:
            overlay = await self.run(self.model.overlay)
        except LayerwiseError as error:
            self.app.say(f"{error}; the file is shown as it is", "bad")
            overlay = await self.run(self.model.overlay, 0)
        self.show_state(overlay)

    def show_state(self, overlay: "Overlay") -> None:
        """Show a state of the history, and no change."""
        model, state = self.model, self.state
        overlay.n_nodes = overlay.numbering.n_nodes  # the cursor may be on a node of a state that is left
        state.steps, state.head, state.overlay = model.steps(), model.history.at, overlay
        state.opened, state.preview, state.check = True, None, None
        self.set_index(overlay)
        self.remember()

    def set_index(self, overlay: Any) -> None:
        """Give the screens another graph."""
        self.state.session.set_index(overlay)
        self.state.on_change.emit()

    def remember(self) -> None:
        """Keep cursor, marks and filter of the edited graph, and which edits were made by one key, over a restart."""
        state = self.state
        edits = state.edits if state.opened else self.edits_before
        KeptEdits(state.session.saved(), self.groups, state.saved, edits, state.last).keep(self.app.session)

    # ── what the worker needs to know ──

    @property
    def result_file(self) -> Path:
        """Where the worker writes what edits make; what an app that was killed left there is gone. LayerwiseError."""
        if self._results is None:
            edits = self.app.workspace.root / "edits"
            try:
                make_folder(edits)
                self._results = TemporaryFolder(edits / "results")
            except OSError as error:
                raise LayerwiseError(f"{edits} cannot be written: {error.strerror}") from error
        return self._results.path / "waiting.structure"

    def place(self) -> dict[str, Any]:
        """Where the worker finds the head."""
        history = self.model.history
        return {"path": str(self.app.session.model), "log": str(history.path), "at": history.at}


def _open_edited(model: Path, index: "GraphIndex", root: Path) -> "EditedModel":
    """In the thread: what edits need is imported there, too."""
    from layerwise._tool.tui.controllers.edited_model import EditedModel

    return EditedModel(model, index, root)
