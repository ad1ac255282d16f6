"""A workspace is private to its user, whatever the umask and whoever created something in it."""

import os
import stat
from itertools import product
from pathlib import Path

import pytest
from support.forked import ForkedWorker
from support.jobs import events_of, jobs_home, run, until
from support.other_user import OTHER, entries, loose, needs_root, open_place
from support.writers import WAYS, forked

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs import OWN
from layerwise._tool.backends.jobs.client import send
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.leases import leases_root
from layerwise._tool.backends.jobs.workspace.prune import prune
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.tui.state.session import SessionStore

__all__ = ["jobs_home", "open_place"]

USED = ("text", "model and data", "folder of results", "large dump", "temporary folder")
UMASKS = {"nothing": (0o000, 0o022, 0o077), "loose": (0o000, 0o027), "an empty folder": (0o002,)}


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)


def modes(root: Path) -> set[str]:
    return {stat.filemode(path.lstat().st_mode) for path in entries(root) if not path.is_symlink()}


@pytest.mark.parametrize("before", UMASKS)
def test_folders_and_files_are_private(jobs_home: Workspace, tmp_path: Path, before: str, forked_workers: None) -> None:
    """Under any umask, in new and existing workspaces; files that the user asked for have the usual mode."""
    for umask in UMASKS[before]:
        root, folder = tmp_path / f"home{umask:o}", tmp_path / f"place{umask:o}"
        folder.mkdir()
        if before != "nothing":
            root.mkdir()
            root.chmod(0o777)
        if before == "loose":
            for name in ("jobs", "cache", "sessions"):
                (root / name).mkdir()
                (root / name).chmod(0o777)
            (root / "index.sqlite").touch()
            (root / "index.sqlite").chmod(0o666)
        assert forked(lambda: _use(root, folder, umask)) == 0  # noqa: B023
        if before == "loose":
            (root / "sessions").chmod(0o700)  # was there, and the root protects it
        assert loose(root) == [], f"umask {umask:o}"
        assert modes(root) <= {"drwx------", "-rw-------"}
        wanted = {stat.filemode(stat.S_IFREG | 0o666 & ~umask), stat.filemode(stat.S_IFDIR | 0o777 & ~umask)}
        assert {stat.filemode(path.lstat().st_mode) for path in entries(folder)[1:]} == wanted, f"umask {umask:o}"


def _use(root: Path, folder: Path, umask: int) -> int:
    """What commands and the app do with a workspace."""
    os.umask(umask)
    home = Workspace(root)
    for way in USED:
        name = WAYS[way][0]
        place = folder / way / name
        place.parent.mkdir()
        params = {"way": way, "system": "all", "path": str(place), "last": -1}
        view = run_inline(JobSpec(action="test_write", params=params), lambda event: None, home)
        assert view.state == "done", view.card
    assert run(home, "untidy").state == "done"
    assert run(home, "big_row").state == "done"
    view = run(home, "spill", {"files": 3})
    send(view.folder, {"type": "reply", "attempt": 1, "data": "x" * 10_000})
    assert len(home.list_jobs()) == len(USED) + 3
    prune(home, [1])
    _, lock = home.reopen(view.id)
    os.close(lock)
    home.view(view.id)
    store = SessionStore(home.root)
    session = store.load(None)
    session.model = folder / "m.onnx"
    store.save(session)
    store.save(session)
    return 0


@needs_root
@pytest.mark.parametrize("where", ["root", "jobs", "cache", "leases"])
def test_files_of_another_user_are_rejected(where: str, open_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = open_place / "home"
    monkeypatch.setenv("LAYERWISE_LEASES", str(root / "leases"))
    Workspace(root)
    leases_root()
    theirs = root if where == "root" else root / where
    os.chown(theirs, OTHER, OTHER)
    for mode in (0o700, 0o755, 0o777, 0o1777):
        theirs.chmod(mode)
        with pytest.raises(LayerwiseError, match=r"belongs to another user: set LAYERWISE_[A-Z]+ to a folder"):
            leases_root() if where == "leases" else Workspace(root)
        assert stat.S_IMODE(theirs.stat().st_mode) == mode


ABOVE = [
    (mode, uid, gid, depth, link)
    for mode, uid, gid, depth, link in product(
        (0o755, 0o775, 0o777, 0o1777, 0o2775), (0, OTHER), (0, OTHER), (1, 2), (False, True)
    )
]


@needs_root
def test_parent_folders_are_checked_like_sshd_does(open_place: Path) -> None:
    """Of 80: one above is another's, or may be written to by others and is not sticky."""
    for number, (mode, uid, gid, depth, link) in enumerate(ABOVE):
        above = open_place / str(number)
        root = above / "a" / "home" if depth == 2 else above / "home"
        root.mkdir(parents=True, mode=0o700)
        named = root
        if link:
            named = open_place / f"link{number}"
            named.symlink_to(root)
        os.chown(above, uid, gid)
        above.chmod(mode)
        open_to_others = not mode & 0o1000 and (mode & 0o002 or (mode & 0o020 and gid != 0))
        if uid != 0 or open_to_others:
            with pytest.raises(LayerwiseError, match=r"others can rename what is in .*: set LAYERWISE_HOME"):
                Workspace(named)
            assert list(root.iterdir()) == []
        else:
            assert (Workspace(named).jobs).is_dir()


@needs_root
def test_a_link_of_another_user_is_rejected_as_workspace(open_place: Path) -> None:
    (open_place / "mine").mkdir(mode=0o700)
    for name, target in (("home", "mine"), ("way", ".")):
        (open_place / name).symlink_to(open_place / target)
        os.lchown(open_place / name, OTHER, OTHER)
    for root in (open_place / "home", open_place / "way" / "mine"):
        with pytest.raises(LayerwiseError, match="set LAYERWISE_HOME"):
            Workspace(root)
    assert list((open_place / "mine").iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o722])
def test_a_world_writable_folder_is_rejected_as_workspace(tmp_path: Path, mode: int) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "notes.txt").touch()
    (tmp_path / "shared").chmod(mode)
    with pytest.raises(LayerwiseError, match="may be written to by others: set LAYERWISE_HOME to a folder of yours"):
        Workspace(tmp_path / "shared")
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == mode


def test_a_folder_with_other_content_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project").chmod(0o755)
    (tmp_path / "project" / "notes.txt").touch()
    for _ in range(2):
        home = Workspace(tmp_path / "project")
        home.list_jobs()
        assert stat.S_IMODE(home.root.stat().st_mode) == 0o755
        assert loose(home.jobs) == loose(home.cache) == []


def _theirs(path: Path) -> None:
    os.lchown(path, OTHER, OTHER)


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _hard_linked_from_theirs(path: Path) -> None:
    other = path.with_name("theirs")
    path.rename(other)
    os.link(other, path)
    _theirs(other)


PLANTED = {
    "folder": _theirs,
    "spec": lambda folder: _theirs(folder / "spec.json"),
    "spec, a link to one's own": lambda folder: _linked(folder / "spec.json"),
    "spec, a hard link": lambda folder: _hard_linked_from_theirs(folder / "spec.json"),
    "folder, a link": _linked,
}


@needs_root
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_job_is_never_run(jobs_home: Workspace, planted: str, tmp_path: Path, forked_workers: None) -> None:
    params = {"way": "text", "system": "all", "path": str(tmp_path / "ran"), "last": -1}
    good = run(jobs_home, "rows").id
    number = run_inline(JobSpec(action="test_write", params=params), lambda event: None, jobs_home).id
    (tmp_path / "ran").unlink()
    folder = jobs_home.jobs / str(number)
    PLANTED[planted](folder)
    own_link = "a link" in planted  # the user's own doing: damaged, and named
    listed = [good, number] if own_link else [good]
    assert [view.id for view in jobs_home.list_jobs()] == jobs_home.ids() == listed
    if own_link:
        assert "is a link" in jobs_home.view(number).damage
    else:
        with pytest.raises(UsageError, match=f"there is no job {number}"):
            jobs_home.view(number)
    with pytest.raises(LayerwiseError, match="is a link" if own_link else f"there is no job {number}"):
        jobs_home.reopen(number)
    if "folder" not in planted:
        pid = ForkedWorker(OWN, folder, 2, dict(os.environ), [])
        until(pid.exited)
        pid.bury()
    assert prune(jobs_home)[0] == [good]
    assert not (tmp_path / "ran").exists()
    assert run(jobs_home, "rows").state == "done"


@needs_root
@pytest.mark.parametrize("name", ["replies.jsonl", "events.jsonl"])
def test_journal_lines_of_another_user_are_ignored(jobs_home: Workspace, name: str, forked_workers: None) -> None:
    """A cancel that somebody else wrote stops nothing, his journal tells nothing."""
    view = run(jobs_home, "rows", {"n": 3})
    _, lock = jobs_home.reopen(view.id)
    path = view.folder / name
    os.chown(path, OTHER, OTHER)
    with path.open("a") as stream:
        stream.write('{"type": "cancel", "attempt": 2}\n')
    if name == "events.jsonl":
        assert events_of(jobs_home, view.id) == []
    else:
        assert supervise.Supervision(view.folder, lock, OWN).run() == "done"
    os.close(lock)
