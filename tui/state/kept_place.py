"""Where one was among the rows of a job, and in which order they were, kept in the session over a restart."""

from typing import Any

from layerwise._tool.tui.state.job_rows import JobRows
from layerwise._tool.tui.state.session import Session


class KeptPlace:
    """page: the name of the screen. The row is that of one job; the order is for any."""

    def __init__(self, session: Session, page: str, table: JobRows) -> None:
        self._session, self._table, self._key = session, table, f"{page}.table"
        self._wanted: tuple[str, int] | None = None

    @property
    def _job(self) -> str:
        return str(getattr(self._table, "job", "") or "")

    def restore(self) -> None:
        """Take the order as it was; the row is come back to when it is there."""
        kept = self._session.forms.get(self._key)
        if not isinstance(kept, dict):
            return
        if kept.get("sort") in self._table.SORTS:
            self._table.sort, self._table.reverse = str(kept["sort"]), kept.get("reverse") is True
            self._table.refresh(always=True)
        job, place = kept.get("job"), kept.get("place")
        if isinstance(job, str) and job and isinstance(place, int) and place >= 0:
            self._wanted = job, place

    def come_back(self) -> int | None:
        """The row to put the cursor on, once, when the job has it; None otherwise."""
        if self._wanted is None or not self._job:
            return None
        job, place = self._wanted
        if job != self._job:
            self._wanted = None
        elif place < self._table.total:
            self._wanted = None
            return place
        return None

    def keep(self, place: int) -> None:
        """Note the row under the cursor, and the order."""
        if self._wanted is not None:
            return  # rows still come
        told: dict[str, Any] = {
            "sort": self._table.sort, "reverse": self._table.reverse, "job": self._job, "place": place,
        }  # fmt: skip
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
