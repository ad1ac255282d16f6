"""The workspace: the folder where jobs, caches and their index are kept."""

import errno
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.permissions import given_umask, keep_private
from layerwise._tool.backends.filesystem.regular import Damaged, read_regular
from layerwise._tool.backends.jobs.folder import (
    JOURNAL,
    LOCK,
    MAX_ID,
    MAX_SPEC,
    REPLIES,
    SPEC,
    damage_of,
    disk_use,
    is_anothers,
    is_own,
    is_started,
    job_id,
    make_reserve,
    write_own,
)
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.conclude import journal, settle, sweep_files
from layerwise._tool.backends.jobs.workspace import locks
from layerwise._tool.backends.jobs.workspace.ownership import open_root, own_folder
from layerwise._tool.backends.jobs.workspace.root import default_root
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_LOST_LOCK_WAIT = 1.0


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
        """Where GPU and CPU leases are taken (see backends.jobs.workspace.leases)."""
        from layerwise._tool.backends.jobs.workspace.leases import leases_root

        return leases_root()

    def create(self, spec: "JobSpec") -> tuple[Path, int]:
        """Make a job's folder and take its lock; returns both.

        Raises LayerwiseError when the disk is full, UsageError when a name in it is not UTF-8.
        """
        data = _encoded(spec)
        folder = self._allocate()
        lock = locks.hold_within(folder / LOCK, _LOST_LOCK_WAIT)
        if lock is None:
            raise LayerwiseError(f"{shown(str(folder))}: another process holds the lock of a new job")
        try:
            (folder / "artifacts").mkdir(0o700)
            write_own(folder / REPLIES, b"")
            make_reserve(folder)
            with journal(folder) as writer:
                writer.write("state", state="queued", attempt=1)
            part = folder / f".{SPEC}"
            write_own(part, data)
            part.rename(folder / SPEC)
            self.notify()
        except OSError as error:
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)
            raise _no_space(error, folder) from error
        return folder, lock

    def _allocate(self) -> Path:
        number = max([self.last_pruned(), *self.numbers()], default=0) % MAX_ID
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
        """Ids of all job folders, those that are being made too; other names in the folder count for nothing."""
        return [number for number in (job_id(path.name) for path in self.jobs.iterdir()) if number]

    def last_pruned(self) -> int:
        """The highest id there was when jobs were last pruned, so that it is not given again."""
        try:
            return job_id(read_regular(self.last_file, 100, own=True).decode("ascii", "replace"))
        except OSError:
            return 0

    @property
    def last_file(self) -> Path:
        return self.jobs / ".last"

    @property
    def notification_file(self) -> Path:
        """A file that is written when a job begins, or begins anew, for those who watch the folder of jobs."""
        return self.jobs / ".bell"

    def notify(self) -> None:
        """Write the notification file: a touch of one that is there already changes nothing that a watch would tell of.

        Where something else stands, a file that comes and goes is told as well.
        """
        other = self.jobs / f".bell-{os.getpid()}"
        try:
            write_own(self.notification_file, b"")
        except Damaged:
            write_own(other, b"")
            other.unlink()

    def ids(self) -> list[int]:
        """The jobs there are, oldest first, damaged ones too. One that another user put there is none."""
        return sorted(number for number in self.numbers() if self._is_job(self.jobs / str(number)))

    @staticmethod
    def _is_job(folder: Path) -> bool:
        return is_started(folder) and not is_anothers(folder)

    def folder(self, job: int | str) -> Path:
        """The folder of a job. Raises UsageError when there is no such job."""
        folder = self.jobs / str(job)
        if not job_id(str(job)) or not self._is_job(folder):
            raise UsageError(f"there is no job {shown(str(job), 40)}: `layerwise jobs` lists those there are")
        return folder

    def view(self, job: int | str) -> JobView:
        """A job as it is now.

        One whose supervisor and worker are both gone is found out here, and reads `lost`.
        """
        view = JobView(self.folder(job))
        self.update(view)
        return view

    def views(self, jobs: Iterable[int]) -> list[JobView]:
        """Those of the jobs that are there still, as they are now."""
        found = []
        for job in jobs:
            with suppress(UsageError):  # removed since it was listed
                found.append(self.view(job))
        return found

    def list_jobs(self, before: Iterable[JobView] = ()) -> list[JobView]:
        """All jobs as they are now, oldest first.

        Journals are read from where the views of an earlier call (`before`) stand, else from where the index does.
        """
        from layerwise._tool.backends.jobs.workspace.index import JobIndex

        index = JobIndex(self.root / "index.sqlite")
        known = {view.id: view for view in before} or index.load(self.jobs)
        views = [known.get(number) or JobView(self.jobs / str(number)) for number in self.ids()]
        changed = [view for view in views if self._has_news(view)]
        for view in changed:
            self.update(view)
            view.trim()
        gone = known.keys() - {view.id for view in views}
        if changed or gone:
            index.save([view for view in changed if view.final and not view.damage], gone)
        return [view for view in views if os.path.lexists(view.folder)]

    def _has_news(self, view: JobView) -> bool:
        try:
            status = (view.folder / JOURNAL).lstat()
        except OSError:
            return True
        return not view.final or bool(view.damage) or status.st_size != view.offset

    def update(self, view: JobView) -> None:
        """Bring a view up to date, like `view` does.

        Raises OSError when this process lacks what it takes to look; what is wrong with the job is its `damage`.
        """
        view.damage = damage_of(view.folder)
        if not is_own(view.folder):
            view.state = "damaged"
            return
        view.refresh()
        if not view.final and settle(view.folder):
            view.refresh()
            view.state = view.state if view.final else "damaged" if view.damage else "lost"
        view.bytes_on_disk = disk_use(view.folder)

    def reopen(self, job: int | str) -> tuple[Path, int]:
        """Begin a new attempt of a job that has ended, in the same folder; returns the folder and its lock.

        Raises UsageError when the job is still alive, LayerwiseError when it is damaged or the disk is full.
        """
        from layerwise._tool.backends.jobs.spec import load_spec

        view = self.view(job)
        if view.damage:
            raise LayerwiseError(f"job {job} is damaged: {view.damage}; `layerwise jobs prune {job}` removes it")
        load_spec(view.folder)
        lock = locks.hold_within(view.folder / LOCK, locks.ENDING if view.final else _LOST_LOCK_WAIT)
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
            self.notify()
        except OSError as error:
            os.close(lock)
            raise _no_space(error, view.folder) from error
        return view.folder, lock


def _encoded(spec: "JobSpec") -> bytes:
    import msgspec

    if spec.umask is None and given_umask() is not None:
        spec = msgspec.structs.replace(spec, umask=given_umask())
    try:
        data = msgspec.json.encode(spec)
    except UnicodeEncodeError as error:
        raise UsageError(f"{shown(str(error.object), 300)}: a name in it is not UTF-8; rename the file") from error
    if len(data) > MAX_SPEC:
        raise UsageError(f"what the job is to do takes {len(data):,} bytes to write down, more than {MAX_SPEC:,}")
    return data


def _no_space(error: OSError, folder: Path) -> LayerwiseError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LayerwiseError(
            f"no space left on the disk of {folder}: free some (`layerwise jobs prune`) and try again"
        )
    return LayerwiseError(f"{shown(str(folder))} cannot be written: {error.strerror}")
