"""A list of any length: only the rows on screen exist, a cursor move paints two cells.

Textual closes each run of cells with a reset and repeats the whole style, and it knows no scroll regions; so
the cursor lives in a gutter of its own, and the view moves by half a page when the cursor leaves it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.geometry import Region
from textual.message import Message

from layerwise._tool.tui.commands import Commanded, command
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE, Glyphs, Line
from layerwise._tool.tui.widgets.lines import LineWidget

if TYPE_CHECKING:
    from typing_extensions import Self

GUTTER = 2


class RowModel(Protocol):
    """What a list shows. `row` is asked only for rows on screen and must be quick (100 us)."""

    def __len__(self) -> int: ...

    def row(self, i: int, cells: int) -> Line:
        """Row `i` as runs, for `cells` terminal cells (the gutter not counted)."""
        ...


class FixedRows:
    """Rows known in advance."""

    def __init__(self, rows: Sequence[Line] = ()) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, i: int, cells: int) -> Line:
        return self._rows[i]


class LiveRows:
    """Rows that are made when they are drawn: how many there are, and the function that gives one."""

    def __init__(self, count: Callable[[], int], row: Callable[[int, int], Line]) -> None:
        self._count, self._row = count, row

    def __len__(self) -> int:
        return self._count()

    def row(self, i: int, cells: int) -> Line:
        return self._row(i, cells)


class VirtualList(Commanded, LineWidget, scope="list", can_focus=True):
    """Shows a RowModel with a gutter cursor.

    Posts `Highlighted` when the cursor row changed and `Selected` on enter. moved: called at once when the cursor is on
    another row, or on one of other rows, before anything else can come between; with whether the list was told to move.
    names: what the model draws names with; how they are shortened follows from all rows on screen.
    """

    DEFAULT_CSS = "VirtualList { height: 1fr; }"

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row; bursts collapse to the last one."""

        list: "VirtualList"
        index: int

        @property
        def control(self) -> "VirtualList":
            return self.list

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, VirtualList.Highlighted) and message.list is self.list

    @dataclass
    class Selected(Message):
        """Enter was pressed on a row."""

        list: "VirtualList"
        index: int

        @property
        def control(self) -> "VirtualList":
            return self.list

    def __init__(
        self, model: RowModel | None = None, *, glyphs: Glyphs = UNICODE, id: str | None = None,
        names: Names | None = None,
    ) -> None:  # fmt: skip
        super().__init__(id=id)
        self._names = names
        self.model: RowModel = model if model is not None else FixedRows()
        self.glyphs = glyphs
        self.cursor = 0
        self.top = 0
        self.moved: Callable[[bool], object] = lambda by_user: None
        self._instead: tuple[Line, ...] = ()
        self._before: tuple[int, int] | None = None
        self._last_height = 0

    @property
    def rows_shown(self) -> int:
        """Rows that there is room for."""
        return self.size.height

    @property
    def rows_kept(self) -> int:
        """Rows among which the cursor is kept: by these the view moves."""
        return self.height

    @property
    def height(self) -> int:
        """Lines of the widget; while it is hidden, those that it had: it may come back without an event."""
        return self.size.height or self._last_height

    # ── drawing ──

    def line(self, y: int) -> Line:
        if not len(self.model) and y < len(self._instead):
            return [(" " * GUTTER, ""), *self._instead[y]]
        index = self.top + y
        row = self._row(index)
        at_cursor = index == self.cursor and index < len(self.model)
        gutter = self.glyphs.cursor.ljust(GUTTER) if at_cursor else " " * GUTTER
        return [(gutter, "cursor" if at_cursor else ""), *row]

    def _row(self, index: int) -> Line:
        return self.model.row(index, self.size.width - GUTTER) if index < len(self.model) else []

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> "Self":
        if not regions and self._names is not None and self.size.height:
            self._names.look(self._draw_all)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _draw_all(self) -> None:
        for index in range(self.top, self.top + self.rows_shown):
            self._row(index)

    def sync(self) -> None:
        """Paint the rows on screen whose content changed. Call after the model's data changed."""
        self._clamp()
        self.refresh()

    def set_instead(self, lines: Sequence[Line]) -> None:
        """Show `lines` while there are no rows."""
        self._instead = tuple(lines)
        self.refresh()

    def set_model(self, model: RowModel, cursor: int = 0) -> None:
        """Show another model with the cursor on row `cursor`."""
        self.model = model
        self.cursor = max(0, min(cursor, len(model) - 1))
        self._reveal()
        self.refresh()
        self._say_moved(told=False)

    # ── moving ──

    def move_to(self, index: int) -> None:
        """Put the cursor on row `index` (kept within the list)."""
        self._move(index)

    def move_times(self, way: str, count: int) -> bool:
        """Move as the command `list.WAY` does so many times (`top`, `bottom`: to that row); False if it is no move."""
        half, page = max(1, self.rows_kept // 2), max(1, self.rows_kept - 1)
        pages = {"half_down": half, "half_up": -half, "page_down": page, "page_up": -page}
        if way in pages:
            self._page(pages[way] * count)
        elif way in ("down", "up", "top", "bottom"):
            self.move_to({"down": self.cursor + count, "up": self.cursor - count}.get(way, count - 1))
        return way != "select"

    def come_back(self, top: int, cursor: int) -> None:
        """Show the rows from `top` on once the cursor is on row `cursor` again."""
        self._before = top, cursor

    def _reveal(self) -> bool:
        """Scroll so that the cursor is on screen; near the edge by half a page, further by centring."""
        if not self.height:  # not shown yet: what is on view is found then
            return False
        height = max(1, self.rows_kept)
        top = self.top
        if self._before is not None and self._before[1] == self.cursor:
            (top, _), self._before = self._before, None
        if not top <= self.cursor < top + height:
            near = top - height // 2 <= self.cursor < top + height + height // 2
            step = height // 2 if self.cursor >= top else -(height // 2)
            top = top + step if near and height > 1 else self.cursor - height // 2
        return self._show_from(top)

    def _show_from(self, top: int) -> bool:
        top = max(0, min(top, len(self.model) - self.rows_kept))
        changed = top != self.top
        self.top = top
        return changed

    def _page(self, rows: int) -> None:
        """Move view and cursor together by `rows`."""
        self._move(self.cursor + rows, rows)

    def _move(self, index: int, scroll: int = 0) -> None:
        index = max(0, min(index, len(self.model) - 1))
        if index == self.cursor:
            return
        old, self.cursor = self.cursor, index
        if self._show_from(self.top + scroll) | self._reveal():
            self.refresh()
        else:
            self._refresh_gutter(old)
            self._refresh_gutter(index)
        self._say_moved(told=True)

    def _say_moved(self, *, told: bool) -> None:
        self.moved(told)
        self.post_message(self.Highlighted(self, self.cursor))

    def _clamp(self) -> None:
        last = max(0, len(self.model) - 1)
        if self.cursor > last:
            self.cursor = last
            self._say_moved(told=False)
        self._show_from(self.top)

    def _refresh_gutter(self, index: int) -> None:
        if self.top <= index < self.top + self.rows_shown:
            self.refresh_lines(index - self.top, 1, 0, GUTTER)
        elif not self.size.height:
            self.refresh()

    # ── events and commands ──

    def on_resize(self, event: Resize) -> None:
        self._last_height = self.size.height or self._last_height
        self._reveal()
        self.refresh()

    def on_click(self, event: Click) -> None:
        if event.y < self.rows_shown:
            self.move_to(self.top + event.y)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self._page(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self._page(-3)

    @command("list.down", "down", keys="j,down")
    def down(self) -> None:
        self.move_to(self.cursor + 1)

    @command("list.up", "up", keys="k,up")
    def up(self) -> None:
        self.move_to(self.cursor - 1)

    @command("list.top", "first row", keys="g,home")
    def first(self) -> None:
        self.move_to(0)

    @command("list.bottom", "last row", keys="G,end")
    def last(self) -> None:
        self.move_to(len(self.model) - 1)

    @command("list.half_down", "half a page down", keys="ctrl+d")
    def half_down(self) -> None:
        self._page(max(1, self.rows_kept // 2))

    @command("list.half_up", "half a page up", keys="ctrl+u")
    def half_up(self) -> None:
        self._page(-max(1, self.rows_kept // 2))

    @command("list.page_down", "page down", keys="pagedown,ctrl+f")
    def page_down(self) -> None:
        self._page(max(1, self.rows_kept - 1))

    @command("list.page_up", "page up", keys="pageup")
    def page_up(self) -> None:
        self._page(-max(1, self.rows_kept - 1))

    @command("list.select", "open the row", keys="enter")
    def select(self) -> None:
        if len(self.model):
            self.post_message(self.Selected(self, self.cursor))
