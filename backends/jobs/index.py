"""What is known of each job, kept so that a list of many jobs does not replay every journal.

Only a cache: it may be deleted at any time and is made again from the job folders.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from backends.jobs.folder import write_own
from backends.jobs.view import JobView

_TABLE = "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, view TEXT NOT NULL)"


class Index:
    """Views of jobs by id in an SQLite file; a damaged file is thrown away."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, jobs: Path) -> dict[int, JobView]:
        """The views there are; as they were when they were saved."""
        try:
            with self._open() as database:
                rows = database.execute("SELECT id, view FROM jobs").fetchall()
            return {number: JobView.from_json(jobs / str(number), text) for number, text in rows}
        except (sqlite3.Error, ValueError, TypeError):
            self._path.unlink(missing_ok=True)
            return {}

    def save(self, changed: Iterable[JobView], gone: Iterable[int]) -> None:
        """Keep what changed and forget what is gone. A busy or full file is left as it is."""
        try:
            with self._open() as database:
                rows = [(view.id, view.to_json()) for view in changed]
                database.executemany("INSERT OR REPLACE INTO jobs VALUES (?, ?)", rows)
                database.executemany("DELETE FROM jobs WHERE id = ?", [(number,) for number in gone])
        except sqlite3.Error:
            return

    def _open(self) -> "_Connection":
        return _Connection(self._path)


class _Connection:
    """An SQLite connection that commits and closes at the end of its `with`."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):
            write_own(path, b"", 0)  # SQLite gives its other files the mode of this one
            path.chmod(0o600)
        self._database = sqlite3.connect(path, timeout=1.0)

    def __enter__(self) -> sqlite3.Connection:
        self._database.execute(_TABLE)
        return self._database

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._database.commit()
        finally:
            self._database.close()
