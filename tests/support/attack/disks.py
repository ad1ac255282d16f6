"""Full disks: a small tmpfs where this may be mounted, RLIMIT_FSIZE elsewhere, and read-only or odd places."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.attack import journals, oracles
from support.attack.case import Case
from support.attack.kills import check_after, check_again
from support.attack.lines import LINES, WRITERS, Line
from support.attack.place import tree
from support.attack.programs import Ended, run

MOUNTS = os.geteuid() == 0
_KEPT = 16 << 10


def attack(case: Case) -> None:
    """Run a command where something cannot be written; then where all can be."""
    ways = [_file_size, _odd_home, _odd_temp, _gone_folder, *([_full, _full, _full, _read_only] if MOUNTS else [])]
    way = case.chance.choice(ways)
    line = case.chance.choice(WRITERS if case.chance.random() < 0.6 else LINES)
    case.tell(f"layerwise {' '.join(line.words)}: {way.__name__.strip('_')}")
    way(case, line)


def _full(case: Case, line: Line) -> None:
    """Room for some kilobytes in the user's folder, the workspace, or TMPDIR."""
    folder = getattr(case.place, case.chance.choice(("work", "home", "home", "temp")))
    free = int(2 ** case.chance.uniform(0, 9)) << 10
    case.tell(f"{free >> 10} KB left in {folder.name}")
    old = tree(case.place.work)
    with _mounted(folder):
        filler = folder / ".filler"
        _fill(folder, filler, free)
        before = journals.on_file(case.place)
        ended = run(case.place, line.words)
        filler.unlink()
        _check(case, line, ended, old, before)
        if case.chance.random() < 0.5:
            check_again(case, line)
        with suppress(OSError):
            oracles.check_left(case)


def _fill(folder: Path, filler: Path, free: int) -> None:
    """Leave so many bytes free."""
    room = shutil.disk_usage(folder).free - free
    with filler.open("wb") as file, suppress(OSError):
        os.posix_fallocate(file.fileno(), 0, max(room, 4096))


@contextmanager
def _mounted(folder: Path) -> Iterator[None]:
    """A tmpfs of 4 MB in the place of a folder, with what is in it."""
    aside = folder.with_name(folder.name + "-aside")
    folder.rename(aside)
    folder.mkdir(mode=aside.stat().st_mode & 0o777)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "attack", str(folder)], check=True)
    try:
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()
        aside.rename(folder)


def _read_only(case: Case, line: Line) -> None:
    """The user's folder, the workspace or TMPDIR cannot be written."""
    folder = getattr(case.place, case.chance.choice(("work", "home", "temp")))
    case.tell(f"{folder.name} is read-only")
    old = tree(case.place.work)
    with _mounted(folder):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        before = journals.on_file(case.place)
        ended = run(case.place, line.words)
        _check_said(case, line, ended)
        oracles.check_made(case, case.references.of(line), ended, old, tree(case.place.work))
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        journals.check_kept(case, before, ("1",) if line.name == "jobs-prune" else ())


def _file_size(case: Case, line: Line) -> None:
    """`ulimit -f`: no file may grow beyond some bytes."""
    most = case.chance.choice((0, 1, 100, 1024, 4096, 10_000, 16_384, 20_000, 50_000))
    case.tell(f"no file over {most} bytes")
    old, before = tree(case.place.work), journals.on_file(case.place)
    ended = run(case.place, line.words, limits={resource.RLIMIT_FSIZE: most})
    if not ended.said.strip():
        ended = ended._replace(err="what it said was a file that may not grow")
    _check(case, line, ended, old, before)
    if case.chance.random() < 0.5:
        check_again(case, line)


def _odd_home(case: Case, line: Line) -> None:
    """LAYERWISE_HOME is no folder, HOME is not there."""
    odd = _odd(case)
    env: dict[str, str | None] = {"LAYERWISE_HOME": str(odd)}
    if case.chance.random() < 0.4:
        case.tell("as HOME, LAYERWISE_HOME not set")
        env = {"LAYERWISE_HOME": None, "HOME": str(odd), "XDG_STATE_HOME": None}
    _in_odd(case, line, env)


def _odd_temp(case: Case, line: Line) -> None:
    """TMPDIR is no folder."""
    _in_odd(case, line, {"TMPDIR": str(_odd(case))})


def _in_odd(case: Case, line: Line, env: dict[str, str | None]) -> None:
    old = tree(case.place.work)
    ended = run(case.place, line.words, env=env)
    _check_said(case, line, ended)
    oracles.check_inputs(case)
    oracles.check_made(case, case.references.of(line), ended, old, tree(case.place.work))
    oracles.check_left(case)


def _odd(case: Case) -> Path:
    """A path that is no folder, or cannot be one."""
    root, what = (
        case.place.root,
        case.chance.choice(("file", "absent", "dangling", "loop", "under", "null", "long", "space")),
    )
    odd = root / f"odd-{what}"
    case.tell(f"{what} for a folder")
    if what == "file":
        odd.write_text("a file")
    elif what == "dangling":
        odd.symlink_to(root / "nowhere" / "at" / "all")
    elif what == "loop":
        odd.symlink_to(odd)
    elif what == "under":
        (root / "odd-file").write_text("a file")
        return root / "odd-file" / "below"
    elif what == "null":
        return Path(os.devnull) / "below"
    elif what == "long":
        return root / ("x" * 300)
    elif what == "space":
        return root / " a\tb '$(touch X)' \u00fc"
    return odd


def _gone_folder(case: Case, line: Line) -> None:
    """The current folder is not there any more."""
    gone = case.place.root / "gone"
    gone.mkdir()
    words = tuple(str(case.place.work / word) if (case.place.work / word).is_file() else word for word in line.words)
    ended = run(case.place, words, cwd=gone, gone=True)
    _check_said(case, line, ended)
    oracles.check_inputs(case)
    oracles.check_left(case)


def _check(case: Case, line: Line, ended: Ended, old: dict[str, str], before: dict[str, bytes]) -> None:
    _check_said(case, line, ended)
    check_after(case, line, ended, old, before, (), False)


def _check_said(case: Case, line: Line, ended: Ended) -> None:
    oracles.check_said(case, ended)
    reference = case.references.of(line)
    if reference.code == 1 and ended.code == 0:
        case.complain("false verdict", f"exit code 0, undisturbed 1: {oracles.tail(ended.said)}")
    if reference.code == 0 and ended.code == 1 and "FAILED | Output" in ended.said:
        case.complain("false verdict", oracles.tail(ended.said))
