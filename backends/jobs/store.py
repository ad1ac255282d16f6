"""The workspace: the folder where jobs, caches and their index are kept."""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from backends.errors import BadFile, LayerwiseError, UsageError
from backends.files import user_path
from backends.jobs import locks
from backends.jobs.cards import Ending
from backends.jobs.conclude import conclude, journal, sweep_files
from backends.jobs.events import JOURNAL
from backends.jobs.folder import LOCK, REPLIES, SPEC, disk_use, is_own_job, make_reserve, read_own, write_own
from backends.jobs.own import open_root, own_folder
from backends.jobs.view import JobView
from backends.private import given_umask, keep_private
from backends.text import shown

if TYPE_CHECKING:
    from backends.jobs.spec import JobSpec

_LOST_LOCK_WAIT = 1.0
_ENDING_WAIT = 5.0  # a supervisor holds the lock for a moment after the last word of its job


def default_root() -> Path:
    """$LAYERWISE_HOME, else the user's state folder for layerwise."""
    home = os.environ.get("LAYERWISE_HOME")
    if home:
        return user_path(home)
    from platformdirs import user_state_dir

    return Path(user_state_dir("layerwise"))


def load_spec(folder: Path) -> "JobSpec":
    """The spec of a job. Raises BadFile."""
    import msgspec

    from backends.jobs.spec import JobSpec

    try:
        return msgspec.json.decode(read_own(folder / SPEC), type=JobSpec)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise BadFile(folder / SPEC, str(error)) from error


class Workspace:
    """`jobs` holds a folder per job, `cache` what can be made again; `leases` this machine's lock files."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root if root is not None else default_root()).absolute()
        self.jobs = self.root / "jobs"
        self.cache = self.root / "cache"
        open_root(self.root)
        for folder in (self.jobs, self.cache):
            own_folder(folder)
        for folder in (self.root / "sessions", self.root / "edits"):
            if folder.is_dir():
                own_folder(folder)
        keep_private(self.root)

    @property
    def leases(self) -> Path:
        """Where GPU and CPU leases are taken (see backends.jobs.leases)."""
        from backends.jobs.leases import leases_root

        return leases_root()

    def create(self, spec: "JobSpec") -> tuple[Path, int]:
        """Make a job's folder and take its lock; returns both.

        Raises LayerwiseError when the disk is full, UsageError when a name in it is not UTF-8.
        """
        data = _encoded(spec)
        folder = self._allocate()
        lock = locks.hold_within(folder / LOCK, _LOST_LOCK_WAIT)
        if lock is None:
            raise LayerwiseError(f"{folder}: another process holds the lock of a job that was only just made")
        try:
            (folder / "artifacts").mkdir(0o700)
            write_own(folder / REPLIES, b"")
            make_reserve(folder)
            with journal(folder) as writer:
                writer.write("state", state="queued", attempt=1)
            part = folder / f".{SPEC}"
            write_own(part, data)
            part.rename(folder / SPEC)
            self.ring()
        except OSError as error:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)
            raise _no_space(error, folder) from error
        return folder, lock

    def _allocate(self) -> Path:
        number = max([self.last_pruned(), *self.numbers()], default=0)
        while True:
            number += 1
            try:
                (self.jobs / str(number)).mkdir(0o700)
            except FileExistsError:
                continue
            except OSError as error:
                raise _no_space(error, self.jobs) from error
            return self.jobs / str(number)

    def numbers(self) -> list[int]:
        """Ids of all job folders, those that are being made too."""
        return [int(path.name) for path in self.jobs.iterdir() if path.name.isdecimal()]

    def last_pruned(self) -> int:
        """The highest id there was when jobs were last pruned, so that it is not given again."""
        try:
            text = self.last_file.read_text()
        except OSError:
            return 0
        return int(text) if text.isdecimal() else 0

    @property
    def last_file(self) -> Path:
        return self.jobs / ".last"

    @property
    def bell(self) -> Path:
        """A file that is written when a job begins, or begins anew, for those who watch the folder of jobs."""
        return self.jobs / ".bell"

    def ring(self) -> None:
        """Write the bell: a touch of a file that is there already changes no file that a watch would tell of."""
        write_own(self.bell, b"")

    def ids(self) -> list[int]:
        """The jobs there are, oldest first. One that another user put there is none."""
        return sorted(number for number in self.numbers() if is_own_job(self.jobs / str(number)))

    def folder(self, job: int | str) -> Path:
        """The folder of a job. Raises UsageError when there is no such job."""
        folder = self.jobs / str(job)
        if not str(job).isdecimal() or not is_own_job(folder):
            raise UsageError(f"there is no job {job}: `layerwise jobs` lists those there are")
        return folder

    def view(self, job: int | str) -> JobView:
        """A job as it is now.

        One whose supervisor and worker are both gone is found out here, and reads `lost`.
        """
        view = JobView(self.folder(job))
        self.update(view)
        return view

    def list_jobs(self, before: Iterable[JobView] = ()) -> list[JobView]:
        """All jobs as they are now, oldest first.

        Journals are read from where the views of an earlier call (`before`) stand, else from where the index does.
        """
        from backends.jobs.index import Index

        index = Index(self.root / "index.sqlite")
        known = {view.id: view for view in before} or index.load(self.jobs)
        views = [known.get(number) or JobView(self.jobs / str(number)) for number in self.ids()]
        changed = [view for view in views if self._has_news(view)]
        for view in changed:
            self.update(view)
        gone = known.keys() - {view.id for view in views}
        if changed or gone:
            index.save([view for view in changed if view.final], gone)
        return views

    def _has_news(self, view: JobView) -> bool:
        try:
            return not view.final or (view.folder / JOURNAL).stat().st_size != view.offset
        except FileNotFoundError:
            return False

    def update(self, view: JobView) -> None:
        """Bring a view up to date, like `view` does."""
        view.refresh()
        if not view.final and self.settle(view.folder):
            view.refresh()
            view.state = view.state if view.final else "lost"
        view.bytes_on_disk = disk_use(view.folder)

    def settle(self, folder: Path) -> bool:
        """Whether nobody holds the job any more; if it has no final state then, writes down how it ended."""
        try:
            lock = locks.probe(folder / LOCK)
        except FileNotFoundError:
            return True
        if lock is None:
            return False
        view = JobView(folder)
        try:
            view.refresh()
            if not view.final:
                conclude(folder, view.attempt, Ending())
        except OSError:
            return True
        finally:
            os.close(lock)
        return True

    def reopen(self, job: int | str) -> tuple[Path, int]:
        """Begin a new attempt of a job that has ended, in the same folder; returns the folder and its lock.

        Raises UsageError when the job is still alive, LayerwiseError when the disk is full.
        """
        view = self.view(job)
        lock = locks.hold_within(view.folder / LOCK, _ENDING_WAIT if view.final else _LOST_LOCK_WAIT)
        view.refresh()
        if lock is None or not view.final:
            if lock is not None:
                os.close(lock)
            raise UsageError(f"job {job} is {view.state}: cancel it, or wait until it has ended")
        try:
            sweep_files(view.folder)
            view.folder.chmod(0o700)
            make_reserve(view.folder)
            with journal(view.folder) as writer:
                writer.write("state", state="queued", attempt=view.attempt + 1)
            self.ring()
        except OSError as error:
            os.close(lock)
            raise _no_space(error, view.folder) from error
        return view.folder, lock

    def prune(
        self, jobs: Iterable[int] | None = None, *, keep: int = 0, older_than: float = 0.0
    ) -> tuple[list[int], int]:
        """Remove jobs that have ended; returns their ids and the bytes they took.

        `jobs` names them, else all but the newest `keep` that ended more than `older_than` seconds ago go.
        """
        from backends.jobs.prune import prune

        return prune(self, jobs, keep, older_than)


def _encoded(spec: "JobSpec") -> bytes:
    import msgspec

    if spec.umask is None and given_umask() is not None:
        spec = msgspec.structs.replace(spec, umask=given_umask())
    try:
        return msgspec.json.encode(spec)
    except UnicodeEncodeError as error:
        raise UsageError(f"{shown(str(error.object), 300)}: a name in it is not UTF-8; rename the file") from error


def _no_space(error: OSError, folder: Path) -> LayerwiseError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LayerwiseError(
            f"no space left on the disk of {folder}: free some (`layerwise jobs prune`) and try again"
        )
    return LayerwiseError(f"{folder} cannot be written: {error.strerror}")
