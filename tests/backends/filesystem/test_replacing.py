"""Replacing a user's files keeps modes, owners and links; links made by other users are not followed."""

import os
import stat
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from support.other_user import OTHER, as_other, needs_root, open_place
from support.writers import WAYS

from layerwise._tool.backends.filesystem.files import atomic_write

__all__ = ["open_place"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_replaced_file_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    """By all that write; in the user's process and in a worker's."""
    for (way, (name, function)), mode in product(WAYS.items(), (0o600, 0o640, 0o444, 0o755, 0o666)):
        target = tmp_path / f"{mode:o}" / way / name
        target.parent.mkdir(parents=True)
        if target.suffix:
            target.write_text("old")
        else:
            target.mkdir()
        target.chmod(mode | 0o700 * target.is_dir())
        _write(function, target, umask)
        assert stat.S_IMODE(target.stat().st_mode) == mode | 0o700 * target.is_dir(), way


def _write(function: Callable[[Path], None], path: Path, umask: int = 0o022) -> int:
    before = os.umask(umask)
    try:
        function(path)
    finally:
        os.umask(before)
    return 0


LINKS = ["relative", "absolute", "chain", "dangling", "into another folder", "to a folder on the way"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_stays_a_link(tmp_path: Path, link: str) -> None:
    for way, (name, function) in WAYS.items():
        place = tmp_path / way
        (place / "far").mkdir(parents=True)
        real = place / ("far" if "folder" in link else ".") / f"real{Path(name).suffix}"
        if link != "dangling" and real.suffix:
            real.write_text("old")
            real.chmod(0o640)
        named = place / name
        if link == "chain":
            (place / "between").symlink_to(real.name)
            named.symlink_to("between")
        elif link == "to a folder on the way":
            (place / "near").symlink_to("far")
            named.symlink_to(f"near/{real.name}")
        else:
            named.symlink_to(real if link == "absolute" else os.path.relpath(real, place))
        if link != "dangling" and not real.suffix:
            real.mkdir()
        _write(function, named)
        assert named.is_symlink() and not real.is_symlink()
        assert real.is_dir() if not real.suffix else real.read_bytes() != b"old"
        assert not list(place.rglob("*.tmp"))


def test_circular_links_are_rejected_and_kept(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="cannot be written"):
        atomic_write(tmp_path / "a", "x")
    assert (tmp_path / "a").is_symlink() and (tmp_path / "b").is_symlink()


@needs_root
def test_another_users_link_in_a_world_writable_folder_is_not_followed(open_place: Path) -> None:
    precious = open_place / "precious"
    precious.write_text("old")
    shared = open_place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "out.txt").symlink_to(precious)
    os.lchown(shared / "out.txt", OTHER, OTHER)
    with pytest.raises(OSError, match="cannot be written"):
        atomic_write(shared / "out.txt", "x")
    assert precious.read_text() == "old"


@needs_root
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o644])
def test_a_replaced_file_keeps_its_owner(open_place: Path, mode: int) -> None:
    """Root keeps owner and group; where another user replaces it, his own group may do no more than all."""
    for _, function in WAYS.values():
        path = open_place / f"out{mode:o}.json"
        path.write_text("old")
        os.chown(path, OTHER, OTHER)
        path.chmod(mode)
        _write(function, path)
        found = path.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (OTHER, OTHER, mode)
    path.chmod(0o664)
    open_place.chmod(0o777)
    os.chown(path, 0, 0)
    assert as_other(lambda: _write(lambda path: atomic_write(path, "x"), path)) == 0
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (OTHER, OTHER, 0o644)


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    yield tmp_path / "pipe", reader
    os.close(reader)


def test_pipes_and_devices_are_written_to_not_replaced(pipe: tuple[Path, int], tmp_path: Path) -> None:
    path, reader = pipe
    atomic_write(path, "through")
    assert os.read(reader, 100) == b"through"
    (tmp_path / "null").symlink_to(os.devnull)
    atomic_write(tmp_path / "null", "gone")
    assert (tmp_path / "null").is_symlink() and stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert stat.S_ISFIFO(path.stat().st_mode)
