"""What is known of each job, kept so that a list of many jobs does not replay every journal.

Only a cache: it may be deleted at any time and is made again from the job folders.
"""

import errno
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.filesystem.regular import Damaged
from layerwise._tool.backends.jobs.folder import write_own
from layerwise._tool.backends.jobs.journal.view import JobView

_SCHEMA = "CREATE TABLE jobs (id INTEGER PRIMARY KEY, view TEXT NOT NULL)"
_BESIDE = ("", "-journal", "-wal", "-shm")
_LONGEST = 1 << 20
_BUSY = 0.3  # seconds
_NOT_DAMAGED = (
    "is locked",
    "readonly database",
    "is full",
    "unable to open",
)  # Python 3.10 has no codes


class JobIndex:
    """Views of jobs by id in an SQLite file; what is not as this class makes it is thrown away, or left alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, jobs: Path) -> dict[int, JobView]:
        """The views there are; as they were when they were saved."""
        try:
            with self._open() as database:
                return dict(_views(database, jobs))
        except (sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
            if not _is_busy(error):
                self._discard()
            return {}
        except OSError:
            return {}

    def save(self, changed: Iterable[JobView], gone: Iterable[int]) -> None:
        """Keep what changed and forget what is gone. A busy or full file is left as it is."""
        try:
            with self._open() as database:
                rows = [(view.id, view.to_json()) for view in changed]
                database.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?)", rows)
                database.executemany("DELETE FROM jobs WHERE id = ?", [(number,) for number in gone])
        except (sqlite3.Error, OSError):
            return

    def _discard(self) -> None:
        for end in _BESIDE:
            with suppress(OSError):
                Path(f"{self._path}{end}").unlink()

    def _open(self) -> "_Connection":
        for end in _BESIDE:  # SQLite would wait for a pipe
            path = Path(f"{self._path}{end}")
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise Damaged(errno.EINVAL, "is no regular file", str(path))
        return _Connection(self._path)


def _views(database: sqlite3.Connection, jobs: Path) -> Iterator[tuple[int, JobView]]:
    rows = database.execute("SELECT id, substr(view, 1, ?) FROM jobs", (_LONGEST,))
    for number, text in rows:
        yield number, JobView.from_json(jobs / str(number), text)


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(words in str(error) for words in _NOT_DAMAGED)


class _Connection:
    """An SQLite connection that commits and closes at the end of its `with`."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):
            write_own(path, b"", 0)  # SQLite gives its other files the mode of this one
            path.chmod(0o600)
        self._database = sqlite3.connect(path, timeout=_BUSY)

    def __enter__(self) -> sqlite3.Connection:
        """Raises ValueError when there is anything but our table: views and triggers would run somebody's code."""
        try:
            made = self._database.execute("SELECT sql FROM sqlite_master").fetchmany(2)
            if not made:
                self._database.execute(_SCHEMA)
            elif made != [(_SCHEMA,)]:
                raise ValueError("another schema")
        except BaseException:
            self._database.close()
            raise
        return self._database

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._database.commit()
        finally:
            self._database.close()
