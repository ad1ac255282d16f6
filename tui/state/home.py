"""The Home screen's rows: models that were open, jobs, and files below the current folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layerwise._tool.tui.state.files import Below
from layerwise._tool.tui.state.session import Recent
from layerwise._tool.tui.state.signal import Signal

MOST_RECENT = 8
MOST_JOBS = 8


@dataclass(frozen=True)
class HomeRow:
    """One thing to open. kind: "open" (a model that was), "job" or "file". path: the model, None for a job without
    one; job: 0 for none; state: of the job; when: seconds since the epoch, 0 if it does not matter.
    """

    kind: str
    title: str
    path: Path | None = None
    job: int = 0
    state: str = ""
    when: float = 0.0

    @property
    def key(self) -> tuple[str, str, int]:
        """What stays while rows come and go."""
        return self.kind, str(self.path), self.job


class HomeState:
    """Rows, and those that a filter leaves. searching: files are still looked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[HomeRow] = []
        self.filter = ""
        self.searching = True
        self.cut = False
        self.on_change: Signal[[]] = Signal()
        self._recent: list[HomeRow] = []
        self._jobs: list[HomeRow] = []
        self._files: list[HomeRow] = []

    def set_recent(self, recent: Sequence[Recent]) -> None:
        """Models of earlier sessions, newest first."""
        self._recent = [
            HomeRow("open", _relative(one.path, self.folder), one.path, when=one.when) for one in recent[:MOST_RECENT]
        ]
        self._narrow()

    def set_jobs(self, rows: Sequence[HomeRow]) -> None:
        """The newest jobs, newest first."""
        self._jobs = list(rows[:MOST_JOBS])
        self._narrow()

    def set_files(self, below: Below) -> None:
        """What lies below the folder."""
        self.searching, self.cut = False, below.cut
        self._files = [HomeRow("file", _relative(path, self.folder), path) for path in below.paths]
        self._narrow()

    def set_filter(self, text: str) -> None:
        """Keep rows in which every word occurs."""
        self.filter = text
        self._narrow()

    @property
    def total(self) -> int:
        """All rows, shown or not."""
        return len(self._recent) + len(self._jobs) + len(self._files)

    def line_of(self, key: tuple[str, str, int] | None) -> int:
        """The line of a row, -1 if it is not shown."""
        return next((line for line, row in enumerate(self.rows) if row.key == key), -1)

    def _narrow(self) -> None:
        words = self.filter.lower().split()
        self.rows = [row for row in (*self._recent, *self._jobs, *self._files) if _fits(row, words)]
        self.on_change.emit()


def _fits(row: HomeRow, words: list[str]) -> bool:
    text = f"{row.kind} {row.job or ''} {row.title} {row.state}".lower()
    return all(word in text for word in words)


def _relative(path: Path, folder: Path) -> str:
    try:
        return str(path.relative_to(folder))
    except ValueError:
        return str(path)
