"""What the Matrix screen shows: one matrix, and the column under the cursor."""

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.matrix.spec import MatrixSpec
from layerwise._tool.tui.state.job_rows import RunFacts
from layerwise._tool.tui.state.matrix import BAD, MatrixGrid
from layerwise._tool.tui.state.signal import Signal


class MatrixState:
    """The matrix on view. job: 0 if there is none; column: the one under the cursor. `on_asked`: another is wanted."""

    def __init__(self) -> None:
        self.on_change: Signal[[]] = Signal()
        self.on_asked: Signal[[]] = Signal()
        self.asked = 0
        self.column = 0
        self.open(0, None)

    def open(self, job: int, spec: MatrixSpec | None) -> None:
        """Forget what is shown and start on another job."""
        self.job, self.spec = job, spec
        self.grid = MatrixGrid(spec.cells if spec is not None else [])
        self.facts = RunFacts()
        self.column = min(self.column, max(0, len(self.grid.columns) - 1))

    def ask(self, job: int) -> None:
        """Have a matrix shown, though a newer one may come."""
        self.asked = job
        self.on_asked.emit()

    def take(self, event: Event) -> None:
        """Take one event of the job's journal."""
        self.facts.take(event)
        self.grid.take(event)

    def move(self, by: int) -> None:
        """Go to a column beside, as far as there are any."""
        self.column = max(0, min(self.column + by, len(self.grid.columns) - 1))

    def next_bad(self, row: int, by: int) -> tuple[int, int] | None:
        """The next cell that did not pass or has changed, as row and column, going round; None if there is none."""
        wide, count = len(self.grid.columns), len(self.grid.models) * len(self.grid.columns)
        for step in range(1, count + 1):
            place = (row * wide + self.column + by * step) % count
            number = self.grid.number(place // wide, place % wide)
            if number >= 0 and (self.grid.verdict(number) in BAD or self.grid.change(number) is not None):
                return place // wide, place % wide
        return None
