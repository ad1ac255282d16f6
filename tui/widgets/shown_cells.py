"""Frames in few bytes: of what the app draws, only the cells that the terminal does not show already are sent."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from layerwise._tool.tui.widgets.escape_codes import Look, Piece, encoded, look_of, look_of_blank, look_of_both

NEAR = 4
"""Cells up to which what stands between two changes is sent again: to move the cursor costs as much."""
Cell = tuple[str, Look]
Shown = tuple[str, Look | None] | None
"""A cell as the terminal has it, None: unknown. A text of several cells stands in the first, its look is None."""


class ShownCells:
    """What the terminal shows, as far as it is known.

    erases: it may be told to erase blanks.
    """

    def __init__(self, erases: bool) -> None:
        self.erases = erases
        self._rows: dict[int, list[Shown]] = {}

    def forget(self) -> None:
        """Nothing is known of the terminal any more: what is drawn next is sent whole."""
        self._rows.clear()

    def only_changed(self, drawn: RenderableType | None) -> RenderableType | None:
        """What is to be sent of an update; anything else is sent as it is, and nothing is known after it."""
        if isinstance(drawn, ChopsUpdate | LayoutUpdate):
            return _ChangedCells(self, drawn)
        if drawn is not None:
            self.forget()
        return drawn

    def changed(self, x: int, y: int, strip: Strip, console: Console) -> Iterator[Piece]:
        """What is to be sent of a strip."""
        row = self._rows.setdefault(y, [])
        end = x + strip.cell_length
        row.extend([None] * (end - len(row)))
        cells = _cells(strip, console._color_system or ColorSystem.TRUECOLOR)
        if cells is not None:
            for first, last in _runs(row[x:end], cells):
                yield from _pieces(x + first, y, cells[first:last])
            row[x:end] = cells
            return
        rendered = strip.render(console)
        whole: list[Shown] = [(rendered, None), *[("", None)] * (strip.cell_length - 1)]
        if row[x:end] != whole:
            yield Piece(x, y, rendered, None)
            row[x:end] = whole
            if self._rows.pop(y + 1, None) is None:  # where it takes more cells there, it runs into the next line, or
                self.forget()  # scrolls the last one


def _cells(strip: Strip, system: ColorSystem) -> list[Cell] | None:
    """The cells of a strip; None where a character takes none or two, as terminals differ there."""
    cells: list[Cell] = []
    for text, style, _ in strip:
        if not text.isascii() and not all(cell_len(letter) == 1 for letter in text):
            return None
        look = look_of(style, system)
        blank = look_of_blank(look)
        cells.extend([(letter, blank if letter == " " else look) for letter in text])
    return cells if len(cells) == strip.cell_length else None


def _runs(shown: Sequence[Shown], cells: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """Where cells are to be written: from the first up to the last that is not."""
    first = last = -1
    for place, (old, new) in enumerate(zip(shown, cells, strict=True)):
        if old == new:
            continue
        near = first >= 0 and place - last <= NEAR
        if not near or not all(look_of_both(cells[last - 1][1], cell[1]) for cell in cells[last:place]):
            if first >= 0:
                yield first, last
            first = place
        last = place + 1
    if first >= 0:
        yield first, last


def _pieces(x: int, y: int, cells: Sequence[Cell]) -> Iterator[Piece]:
    """Cells of a line by look; blanks go with what stands beside them."""
    start, look = 0, cells[0][1]
    for place, (_, new) in enumerate(cells):
        both = look_of_both(look, new)
        if both is None:
            yield Piece(x + start, y, "".join(letter for letter, _ in cells[start:place]), look)
            start, look = place, new
        else:
            look = both
    yield Piece(x + start, y, "".join(letter for letter, _ in cells[start:]), look)


class _ChangedCells(CompositorUpdate):
    """An update of Textual's without what the terminal shows already."""

    def __init__(self, shown: ShownCells, update: ChopsUpdate | LayoutUpdate) -> None:
        self._shown, self._update = shown, update

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self._update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        """The text to send."""
        strips = _of_layout(self._update) if isinstance(self._update, LayoutUpdate) else _of_chops(self._update)
        pieces = [piece for strip in strips for piece in self._shown.changed(*strip, console)]
        return encoded(pieces, self._shown.erases)


def _of_layout(update: LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    for y, line in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in line:
            yield x, y, strip
            x += strip.cell_length


def _of_chops(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """What lies in the update's spans, as Textual cuts it."""
    for y, start, stop in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x <= stop and end > start:
                whole = start <= x < stop and end <= stop
                yield x, y, strip if whole else strip.crop(0, min(end, stop) - x)
