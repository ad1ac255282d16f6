"""Where one was among the rows of a job, and in which order they were, kept in the session over a restart."""

import msgspec

from layerwise._tool.tui.state.job_rows import JobRows
from layerwise._tool.tui.state.session import Session


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """The order of a table, and the row of a job under the cursor, -1 for none.

    module: its path where the cursor is on the row of a module, of which `place` is the first; None in it: what lies in
    no module.
    """

    sort: str = ""
    reverse: bool = False
    job: str = ""
    place: int = -1
    module: tuple[tuple[str, ...] | None] | None = None


class KeptPlace:
    """page: the name of the screen. The row is that of one job; the order is for any."""

    def __init__(self, session: Session, page: str, table: JobRows) -> None:
        self._session, self._table, self._key = session, table, f"{page}.table"
        self._wanted: _Kept | None = None

    @property
    def _job(self) -> str:
        return str(getattr(self._table, "job", "") or "")

    def restore(self) -> None:
        """Take the order as it was; the row is come back to when it is there."""
        kept = self._session.kept(self._key, _Kept)
        if kept.sort in self._table.SORTS:
            self._table.sort, self._table.reverse = kept.sort, kept.reverse
            self._table.refresh(always=True)
        if kept.job and kept.place >= 0:
            self._wanted = kept

    def come_back(self) -> object:
        """What the line to put the cursor on is known by, once, when the job has it; None otherwise."""
        kept = self._wanted
        if kept is None or not self._job:
            return None
        if kept.job != self._job:
            self._wanted = None
        elif kept.place < self._table.total:
            self._wanted = None
            module = ("module", kept.module[0]) if kept.module else None
            return module if module and self._table.line_of(module) >= 0 else kept.place
        return None

    def keep(self, line: int) -> None:
        """Note the row under the cursor, at a line of the list, and the order."""
        if self._wanted is not None:
            return  # rows still come
        table, anchor = self._table, self._table.anchor(line)
        module = (anchor[1],) if isinstance(anchor, tuple) else None
        told = msgspec.to_builtins(_Kept(table.sort, table.reverse, self._job, table.first(line), module))
        if self._session.forms.get(self._key) != told:
            self._session.remember(self._key, form=told)


class KeptCursor:
    """Where one was in another list of a job's rows. page: the name of the screen; count: of numbers that say where.

    left: the job, and these numbers; None when the cursor is on no row in particular.
    """

    def __init__(self, session: Session, page: str, count: int = 1) -> None:
        self._session, self._key = session, f"{page}.row"
        kept = session.forms.get(self._key)
        whole = kept if isinstance(kept, list) and [*map(type, kept)] == [int] * (1 + count) else []
        self.left: tuple[int, ...] | None = tuple(whole) or None

    def keep(self, *left: int) -> None:
        """Note where the cursor is; nothing for no row in particular."""
        self.left = left or None
        if self._session.forms.get(self._key) != [*left]:
            self._session.remember(self._key, form=[*left])
