"""What is in a folder or an archive: its files, by their paths there. Nothing is written where it says.

Only files that are plain files count; a link, a pipe, a device or a path that leads out of the place is an error where
it bears the name of a tensor file, as are two files of one path. All else is listed as not read.
"""

import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct

from layerwise._tool.backends.dumps.kinds import TENSORS
from layerwise._tool.backends.dumps.packed import BROKEN, Zipped, unpacked
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.regular import kind_of
from layerwise._tool.backends.formats.ranges import FileRange
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

MOST = 1 << 18  # files of one dump
_DEPTH = 32  # folders within folders
_ASIDE = ("__MACOSX",)


class Member(Struct, frozen=True):
    """A file of a dump. path: in the dump, with slashes. name: for messages. size: in bytes. head: reads so many of its
    first bytes; opened: opens it for access anywhere; lasting: the same, for as long as the dump is used. crc: of the
    whole, where an archive says.
    """

    path: str
    name: str
    size: int
    head: Callable[[int], bytes]
    opened: Callable[[], FileRange]
    lasting: Callable[[], FileRange]
    crc: int | None = None

    @staticmethod
    def of(path: str, name: str, source: FileRange) -> "Member":
        """The file that these bytes are."""
        return Member(path, name, source.size, partial(source.read, 0), lambda: source, lambda: source)

    def check(self, data: "memoryview | bytes") -> None:
        """ValueError if this is not what the archive says that the file is."""
        if self.crc is not None and zlib.crc32(data) != self.crc:
            raise ValueError("its checksum is another than the archive says: it is damaged")


class Contents(Struct):
    """The files of a dump that hold tensors, in order of their paths, and the paths of those that do not."""

    members: list[Member]
    others: list[str]


def contents(path: Path) -> Contents:
    """The files of a dump. BadFile says what is wrong with it, or that there is none."""
    try:
        found = sorted(_listed(path), key=lambda entry: _natural(entry[0]))
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from error
    result = Contents([], [])
    seen: set[str] = set()
    for name, member in found:
        if isinstance(member, str) and _is_tensor(name):
            raise BadFile(path, f"{shown(name, 200)} {member}")
        if name in seen:
            raise BadFile(path, f"{shown(name, 200)} is there twice")
        seen.add(name)
        if isinstance(member, str) or not _is_tensor(name):
            result.others.append(name)
        else:
            result.members.append(member)
    if not result.members:
        what = f"; it holds {shown(result.others[0], 120)} and the like" if result.others else ""
        raise BadFile(path, f"holds no tensors: no {', '.join(TENSORS)} file{what}")
    return result


def _is_tensor(name: str) -> bool:
    last = PurePosixPath(name).name
    aside = last.startswith(".") or name.split("/", 1)[0] in _ASIDE
    return not aside and name.lower().endswith(TENSORS)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """What sorts numbers in names by their values."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for char in (*text, ""):
        if char.isascii() and char.isdigit():
            digits += char
            continue
        if digits:
            parts.append((0, int(digits[:18]), digits))
            digits = ""
        parts.append((1, 0, char))
    return parts


Found = tuple[str, "Member | str"]


def _listed(path: Path) -> Iterator[Found]:
    """Paths with their files, or with the reason why one is none."""
    lower = path.name.lower()
    if path.is_dir():
        found = _folder(path, "", 0)
    elif lower.endswith(".zip"):
        found = zip_members(path, FileRange.whole(path))
    elif lower.endswith((".tar.gz", ".tgz")):
        found = _tar(path, unpacked(path, FileRange.whole(path)))
    elif lower.endswith(".tar"):
        found = _tar(path, FileRange.whole(path))
    else:
        whole = FileRange.whole(path)
        found = iter([(path.name, Member.of(path.name, str(path), whole))])
    for count, entry in enumerate(found):
        if count >= MOST:
            raise BadFile(path, f"holds more than {MOST:,} files")
        yield entry


def _folder(root: Path, under: str, depth: int) -> Iterator[Found]:
    if depth > _DEPTH:
        raise BadFile(root, f"has folders more than {_DEPTH} deep")
    with os.scandir(root / under) as entries:
        for entry in entries:
            name = under + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield from _folder(root, f"{name}/", depth + 1)
            elif kind := kind_of(status.st_mode):
                yield name, f"is {kind}, not a regular file: a dump is read without following links"
            else:
                file = root / name
                head = partial(FileRange(file, 0, status.st_size).read, 0)
                whole = partial(FileRange.whole, file)
                yield name, Member(name, str(file), status.st_size, head, whole, whole)


def zip_members(path: Path, source: FileRange, *, keys: bool = False) -> Iterator[Found]:
    """The files of a zip archive that is in `source`. BadFile (which names `path`) if it is damaged.

    keys: its names are no paths, but keys that may be anything (`/encoder/Add` of an .npz).
    """
    try:
        archive = Zipped(path, source)
    except BROKEN as error:
        raise BadFile(path, f"not a zip archive: {(in_words(error, 200) or type(error).__name__)}") from None
    for info in archive.infos:
        if info.filename.endswith("/"):
            continue
        mode = info.external_attr >> 16
        kind = kind_of(mode) if stat.S_IFMT(mode) else ""
        wrong = _wrong(info.orig_filename, keys) or (kind and f"is {kind}, not a file") or _cannot(info)
        if wrong:
            yield info.filename, wrong
            continue
        head, opened, lasting = (
            partial(archive.head, info),
            partial(archive.opened, info),
            partial(archive.lasting, info),
        )
        name = f"{path}/{info.filename}"
        yield info.filename, Member(info.filename, name, info.file_size, head, opened, lasting, info.CRC)


def _cannot(info: zipfile.ZipInfo) -> str:
    return "is encrypted" if info.flag_bits & 1 else ""


def _wrong(name: str, key: bool = False) -> str:
    """What is wrong with a path in an archive, "" if nothing."""
    parts = name.split("/")
    if not name or "\0" in name:
        return "has no proper name"
    if key:
        return ""
    if name.startswith("/") or ".." in parts or "\\" in name:
        return "leads out of the archive"
    return "is too deep" if len(parts) > _DEPTH else ""


def _tar(path: Path, source: FileRange) -> Iterator[Found]:
    try:
        with source.stream() as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for info in archive:
                if not info.isdir():
                    yield info.name.removeprefix("./"), _tar_wrong(info) or _tar_member(path, source, info)
    except (tarfile.TarError, ValueError, EOFError, OverflowError, MemoryError, RecursionError) as error:
        raise BadFile(path, f"not a complete tar archive: {in_words(error, 200)}") from None


def _tar_wrong(info: tarfile.TarInfo) -> str:
    if not info.isreg():
        return "is a link, a pipe or a device, not a file"
    return _wrong(info.name.removeprefix("./")) or ("is a sparse file" if info.issparse() else "")


def _tar_member(path: Path, source: FileRange, info: tarfile.TarInfo) -> Member:
    name = info.name.removeprefix("./")
    return Member.of(name, f"{path}/{name}", source.part(info.offset_data, info.size))
