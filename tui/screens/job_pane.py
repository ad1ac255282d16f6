"""What the job under the cursor says, on the Jobs screen."""

from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.widgets.lines import DetailPane


class JobPane(DetailPane):
    """Follows the end of the journal as long as the reader is there; a job just come to starts at its facts."""

    _job = 0

    def put(self, job: int, lines: list[Line]) -> None:
        """Show what a job says now."""
        last = max(0, len(self.lines) - self.size.height)
        follows = job == self._job and last > 0 and self.top >= last
        end = max(0, len(lines) - self.size.height)
        self.set_lines(lines, end if follows else self.top if job == self._job else 0)
        self._job = job

    def begin_anew(self) -> None:
        """The next lines are read from their first one."""
        self._job = 0
