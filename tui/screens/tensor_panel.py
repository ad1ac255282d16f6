"""One tensor of the layer error table in full, in the place of the table."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.controllers.error_rows import TensorController
from layerwise._tool.tui.presenters.error_detail import detail_lines
from layerwise._tool.tui.presenters.tensor_values import tensor_lines
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.presenters.verdicts import word_of
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import run_latest
from layerwise._tool.tui.widgets.lines import DetailPane


class TensorPanel(DetailPane):
    """Shows a row's statistics at once, the rest when the job that reads the tensor is done."""

    def __init__(self, state: AppState, control: TensorController) -> None:
        super().__init__(id="tensor")
        self._state = state
        self._control = control
        self._reading = False
        self._later: list[int | None] = []

    def show(self, place: int) -> None:
        """Show the tensor of a row of the table."""
        row = self._state.errors.table.row(place)
        names = self._state.errors.facts.runners
        errors = self._state.errors
        word, evidence = word_of(errors.table, place), errors.evidence.get(row.tensor, "")
        lines = detail_lines(row, names, max(40, self.app.size.width - 2), word, evidence)
        self._reading, self._later = True, []
        self._put([*lines, [], [("reading the values on both sides …", "dim")]])
        run_latest(self, "tensor", lambda: self._read(place, lines))

    async def _read(self, place: int, lines: list[Line]) -> None:
        try:
            data = await self._control.values(place)
        except LayerwiseError as error:
            self._done([*lines, [], [(f"the values could not be read: {error}", "bad")]])
            return
        names = self._state.errors.facts.runners
        cells = max(40, self.size.width - 2)
        self._done([*lines, [], *tensor_lines(data, names, cells, self._state.glyphs)])

    # What was scrolled before the values were there is scrolled again in all of it.

    def scroll_lines(self, by: int) -> None:
        if self._reading:
            self._later.append(by)
        super().scroll_lines(by)

    def scroll_bottom(self) -> None:
        """To the last line, once it is known."""
        super().scroll_bottom()
        if self._reading:
            self._later[-1] = None

    def _done(self, lines: list[Line]) -> None:
        self._reading = False
        self._put(lines)
        for by in self._later:
            self.scroll_lines(len(self.lines) if by is None else by)

    def _put(self, lines: list[Line]) -> None:
        hint: Line = [("esc ", "key"), ("back to the table   ", "dim"), ("j k ", "key"), ("scroll", "dim")]
        self.set_lines([[(" ", ""), *line] for line in [hint, *lines]])
