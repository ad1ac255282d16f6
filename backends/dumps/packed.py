"""Compressed files: read through, or unpacked to a file without a name, where they have to be read anywhere."""

import gzip
import lzma
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.unnamed_files import scratch_file
from layerwise._tool.backends.formats.ranges import FileRange
from layerwise._tool.backends.sizes import binary_size
from layerwise._tool.backends.wording import in_words

BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError, ValueError,
    struct.error, OverflowError, MemoryError, UnicodeError,
)  # fmt: skip
_HEAD = 30  # bytes of a local header before the name (APPNOTE.TXT, 4.3.7)
_STEP = 1 << 20
_BLOCK = 512  # bytes of a tar header
_SMALL = 64 << 20  # bytes that are unpacked into memory
_SHARE = 2  # of the free space of the temporary folder that an unpacked file may take: a half


class Zipped:
    """A zip archive: its directory. Nothing is held open but what `lasting` unpacked."""

    def __init__(self, path: Path, source: FileRange) -> None:
        """Read the directory. One of BROKEN if it is damaged."""
        self._path, self._source = path, source
        self._kept: BinaryIO | None = None
        with source.stream() as stream, zipfile.ZipFile(stream) as archive:
            self.infos = archive.infolist()

    def head(self, info: zipfile.ZipInfo, count: int) -> bytes:
        """The first bytes of an entry. BadFile if it is damaged."""
        with self._damage(info):
            if info.compress_type == zipfile.ZIP_STORED:
                return self._stored(info).read(0, count)
            with self._stream(info) as stream:
                return stream.read(count)

    def opened(self, info: zipfile.ZipInfo) -> FileRange:
        """The bytes of an entry: a part of the archive, or the unpacked file. BadFile if it is damaged."""
        with self._damage(info):
            if info.compress_type == zipfile.ZIP_STORED:
                return self._stored(info)
            with self._stream(info) as stream:
                return poured(self._name(info), stream, info.file_size)

    def lasting(self, info: zipfile.ZipInfo) -> FileRange:
        """As `opened`, for what is kept: all that is unpacked is in one file."""
        if info.compress_type == zipfile.ZIP_STORED:
            return self.opened(info)
        self._kept = self._kept or scratch_file(Path(tempfile.gettempdir()))
        with self._damage(info), self._stream(info) as stream:
            return poured(self._name(info), stream, info.file_size, self._kept)

    def _name(self, info: zipfile.ZipInfo) -> str:
        return f"{self._path}/{info.filename}"

    @contextmanager
    def _damage(self, info: zipfile.ZipInfo) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            raise BadFile(self._name(info), f"damaged: {(in_words(error, 200) or type(error).__name__)}") from None

    def _stream(self, info: zipfile.ZipInfo) -> BinaryIO:
        """An entry, unpacked as it is read; zipfile checks its length and its checksum at the end."""
        packed = self._stored(info).stream()
        return cast(BinaryIO, zipfile.ZipExtFile(packed, "r", info, close_fileobj=True))

    def _stored(self, info: zipfile.ZipInfo) -> FileRange:
        """The bytes of an entry as they are in the archive."""
        head = self._source.read(info.header_offset, _HEAD)
        plain = info.compress_type == zipfile.ZIP_STORED
        if len(head) < _HEAD or head[:4] != b"PK\3\4" or (plain and info.compress_size != info.file_size):
            raise ValueError("its sizes or its header are wrong")
        name, extra = struct.unpack_from("<HH", head, 26)
        if self._source.read(info.header_offset + _HEAD, name) != info.orig_filename.encode(_encoding(info)):
            raise ValueError("its name is another in the directory than in the file")
        return self._source.part(info.header_offset + _HEAD + name + extra, info.compress_size)


def _encoding(info: zipfile.ZipInfo) -> str:
    return "utf-8" if info.flag_bits & 0x800 else "cp437"


def unpacked(path: Path, source: FileRange) -> FileRange:
    """A tar archive in a gzip file, unpacked to a file without a name. BadFile if it is damaged, or is too large."""
    try:
        with source.stream() as packed, gzip.GzipFile(fileobj=packed) as stream:
            if stream.peek(_BLOCK)[257:262] != b"ustar":
                raise BadFile(path, "not a tar archive in a gzip file")
            return poured(str(path), cast(BinaryIO, stream), None)
    except (*BROKEN, gzip.BadGzipFile) as error:
        raise BadFile(path, f"not a complete gzip file: {in_words(error, 200)}") from None


def poured(name: str, stream: BinaryIO, size: int | None, target: BinaryIO | None = None) -> FileRange:
    """The bytes of a stream in a file without a name, at the end of `target` if there is one. A small one is in memory.

    size: what it has to be, None if that is not known. BadFile if there is no room, ValueError for another size.
    """
    folder = Path(tempfile.gettempdir())
    small = target is None and size is not None and size <= _SMALL
    most = _SMALL if small else shutil.disk_usage(folder).free // _SHARE
    made = target or (_in_memory() if small else scratch_file(folder))
    start, done = made.seek(0, os.SEEK_END), 0
    try:
        while part := stream.read(_STEP):
            done += len(part)
            if done > most:
                raise BadFile(name, f"more than {binary_size(most)} when unpacked: there is no room for it")
            made.write(part)
        made.flush()
        if size is not None and done != size:
            raise ValueError(f"it has {done} bytes, the archive says {size}")
    except BaseException:
        if target is None:
            made.close()
        raise
    return FileRange(Path(name), start, done, made)


def _in_memory() -> BinaryIO:
    """A file without a name, in memory where the system has that (Linux)."""
    try:
        return cast(BinaryIO, os.fdopen(os.memfd_create("unpacked", os.MFD_CLOEXEC), "w+b"))
    except (AttributeError, OSError):
        return scratch_file(Path(tempfile.gettempdir()))
