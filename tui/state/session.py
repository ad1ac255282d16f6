"""What the user has on screen: shared between the screens, kept over a restart."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.tui.state.signal import Signal

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.error_table import ErrorTable

Kind = TypeVar("Kind")


class Saved(msgspec.Struct, omit_defaults=True):
    """The part of a session that is written to disk, one JSON file a model.

    marks: tensor names. filters: screen -> filter text.
    forms: screen -> whatever plain values that screen wants back. compare_job: id of the last comparison; debug_job: of
    the last search.
    """

    model: str | None = None
    screen: str = "graph"
    theme: str = ""
    node: int = 0
    marks: list[str] = []
    compare_job: str | None = None
    debug_job: int | None = None
    filters: dict[str, str] = {}
    forms: dict[str, Any] = {}


_LINE, _VIEWS = "line", "views"  # among the forms


class Recent(msgspec.Struct, frozen=True):
    """A model of an earlier session, and when that was last written (seconds since the epoch)."""

    path: Path
    when: float


class NodeError(msgspec.Struct, frozen=True):
    """The worst result of a comparison for one node, as the graph shows it.

    passed: None where it was not judged. place: its row in `table`, that of the comparison on view.
    """

    max_abs: float
    passed: bool | None
    finding: str = ""
    place: int = -1
    table: "ErrorTable | None" = None


class Session:
    """One model being looked at. Plain data with signals; no widget, no process.

    on_modules: it is known which modules the nodes come from.
    index: the model's graph once it is open; opening: how far that is; problem: why it cannot be.
    node: the selected node, shared by all screens; kept_node: that of the session before.
    errors: node number -> its worst error in the comparison on view.
    Every change that is to survive a restart goes through a method here, which emits `on_saved_change`; that the `:`
    line is closed is to be written at once (`on_line_closed`).
    """

    def __init__(self, model: Path | None, saved: Saved | None = None) -> None:
        saved = saved or Saved()
        self.model = model
        self.index: GraphIndex | None = None
        self.opening = self.problem = ""
        self.marks: set[str] = set(saved.marks)
        self.node = self.kept_node = saved.node
        self.screen = saved.screen
        self.theme = saved.theme
        self.compare_job = saved.compare_job
        self.debug_job = saved.debug_job
        self.filters = saved.filters
        self.forms = saved.forms
        self.errors: dict[int, NodeError] = {}
        self.on_index: Signal[[]] = Signal()
        self.on_opening: Signal[[]] = Signal()
        self.on_modules: Signal[[]] = Signal()
        self.on_marks: Signal[[]] = Signal()
        self.on_node: Signal[[]] = Signal()
        self.on_errors: Signal[[]] = Signal()
        self.on_compare_job: Signal[[]] = Signal()
        self.on_debug_job: Signal[[]] = Signal()
        self.on_saved_change: Signal[[]] = Signal()
        self.on_line_closed: Signal[[]] = Signal()

    @property
    def no_graph(self) -> str:
        """Why there is no graph, and none is to come; "" if neither."""
        return NO_MODEL if self.model is None else self.problem

    def set_index(self, index: "GraphIndex") -> None:
        self.index = index
        if not 0 <= self.node < max(1, index.n_nodes):
            self.node = 0
        self.on_index.emit()

    def set_opening(self, progress: str) -> None:
        """Say how far the indexing of the model is; empty when there is nothing to wait for."""
        self.opening, self.problem = progress, ""
        self.on_opening.emit()

    def set_problem(self, problem: str) -> None:
        """Say why the model's graph cannot be shown."""
        self.opening, self.problem = "", problem
        self.on_opening.emit()

    def select_node(self, node: int) -> None:
        if node != self.node:
            self.node = node
            self.on_node.emit()
            self.on_saved_change.emit()

    def mark(self, names: Iterable[str]) -> None:
        self._set_marks(self.marks.union(names))

    def unmark(self, names: Iterable[str]) -> None:
        self._set_marks(self.marks.difference(names))

    def _set_marks(self, marks: set[str]) -> None:
        if marks != self.marks:
            self.marks = marks
            self.on_marks.emit()
            self.on_saved_change.emit()

    def set_compare_job(self, job: str | None) -> None:
        """Make `job` the comparison on view; the old one's errors leave the graph."""
        if job != self.compare_job:
            self.compare_job = job
            self.set_errors({})
            self.on_compare_job.emit()
            self.on_saved_change.emit()

    def set_debug_job(self, job: int | None) -> None:
        """Make `job` the search on view."""
        if job != self.debug_job:
            self.debug_job = job
            self.on_debug_job.emit()
            self.on_saved_change.emit()

    def set_errors(self, errors: dict[int, NodeError]) -> None:
        self.errors = errors
        self.on_errors.emit()

    def remember(self, screen: str, *, filter: str | None = None, form: Any = None) -> None:
        """Keep a screen's filter text or form values for the next start."""
        if filter is not None:
            self.filters[screen] = filter
        if form is not None:
            self.forms[screen] = form
        self.on_saved_change.emit()

    def kept(self, screen: str, kind: type[Kind]) -> Kind:
        """The form values that a screen kept; those of `kind` without arguments where they are damaged, or none."""
        try:
            return msgspec.convert(self.forms.get(screen, {}), kind, strict=False)
        except msgspec.ValidationError:
            return kind()

    def keep_line(self, text: str) -> None:
        """Keep what stands on the open `:` line."""
        if self.line != text:
            self.remember(_LINE, form=text)

    def close_line(self) -> None:
        """Keep that the `:` line was left or entered; in the second case before what it says is done."""
        self.keep_line("")
        self.on_line_closed.emit()

    @property
    def line(self) -> str:
        """What stood on the `:` line when the app ended with it open."""
        kept = self.forms.get(_LINE)
        return kept if isinstance(kept, str) else ""

    def keep_view(self, screen: str, top: int, cursor: int) -> None:
        """Keep which row is the first on view in a screen's list, and which is the cursor's."""
        self.remember(_VIEWS, form={**self._views, screen: [top, cursor]})

    def view(self, screen: str) -> tuple[int, int] | None:
        """The first row on view in a screen's list and that of the cursor, as they were kept; None if none was."""
        found = self._views.get(screen)
        if not isinstance(found, list) or [*map(type, found)] != [int, int]:
            return None
        return found[0], found[1]

    @property
    def _views(self) -> dict[str, Any]:
        kept = self.forms.get(_VIEWS)
        return kept if isinstance(kept, dict) else {}

    def set_screen(self, name: str) -> None:
        self.screen = name
        self.on_saved_change.emit()

    def set_theme(self, name: str) -> None:
        self.theme = name
        self.on_saved_change.emit()

    def saved(self) -> Saved:
        return Saved(
            model=str(self.model) if self.model else None, screen=self.screen, theme=self.theme, node=self.node,
            marks=sorted(self.marks), compare_job=self.compare_job,
            debug_job=self.debug_job, filters=self.filters,
            forms=self.forms,
        )  # fmt: skip


HOME = "home"
"""The screen of a session without a model."""

NO_MODEL = "no model is open; key 0 lists what may be opened, :open FILE opens any other"

_LAST = "last.json"  # of earlier versions


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


class SessionStore:
    """Sessions of a workspace: one file a model."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "sessions"

    def load(self, model: Path | None) -> Session:
        """The session of `model`; None, or a broken or absent file, gives a fresh one."""
        if model is None:
            return Session(None, Saved(screen=HOME))
        return Session(model, self._read(self._file(model)))

    def recent(self, most: int = 50) -> list[Recent]:
        """The models of the sessions there are, last used first; whether they still exist is not asked."""
        files = [(_time(path), path) for path in self.folder.glob("*.json") if path.name != _LAST]
        found = ((when, self._read(path)) for when, path in sorted(files, reverse=True)[:most])
        return [Recent(Path(saved.model), when) for when, saved in found if saved is not None and saved.model]

    def save(self, session: Session) -> None:
        """Write the session whole. Raises OSError."""
        if session.model is None:
            return
        make_folder(self.folder)
        atomic_write(self._file(session.model), msgspec.json.encode(session.saved()))

    def _file(self, model: Path) -> Path:
        digest = hashlib.sha256(str(model).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.folder / f"{digest}.json"

    @staticmethod
    def _read(path: Path) -> Saved | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Saved)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
