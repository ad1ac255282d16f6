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
from layerwise._tool.backends.text import shown

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
    """A zip archive. The stream over it stays open as long as this is used."""

    def __init__(self, path: Path, source: FileRange) -> None:
        """Read its directory. One of BROKEN if it is damaged."""
        self._path, self._source = path, source
        stream = source.stream()
        try:
            self._archive = zipfile.ZipFile(stream)
        except BaseException:
            stream.close()
            raise

    def infos(self) -> list[zipfile.ZipInfo]:
        """Its entries, in order."""
        return self._archive.infolist()

    def head(self, info: zipfile.ZipInfo, count: int) -> bytes:
        """The first bytes of an entry. BadFile if it is damaged."""
        with _damage(self._name(info)), self._archive.open(info) as stream:
            return stream.read(count)

    def opened(self, info: zipfile.ZipInfo) -> FileRange:
        """The bytes of an entry: a part of the archive, or the unpacked file. BadFile if it is damaged."""
        with _damage(self._name(info)):
            if info.compress_type == zipfile.ZIP_STORED:
                return self._stored(info)
            with self._archive.open(info) as stream:
                return _poured(self._name(info), cast(BinaryIO, stream), info.file_size)

    def _name(self, info: zipfile.ZipInfo) -> str:
        return f"{self._path}/{info.filename}"

    def _stored(self, info: zipfile.ZipInfo) -> FileRange:
        head = self._source.read(info.header_offset, _HEAD)
        if len(head) < _HEAD or head[:4] != b"PK\3\4" or info.compress_size != info.file_size:
            raise ValueError("its sizes or its header are wrong")
        name, extra = struct.unpack_from("<HH", head, 26)
        if self._source.read(info.header_offset + _HEAD, name) != info.orig_filename.encode(_encoding(info)):
            raise ValueError("its name is another in the directory than in the file")
        return self._source.part(info.header_offset + _HEAD + name + extra, info.file_size)


def _encoding(info: zipfile.ZipInfo) -> str:
    return "utf-8" if info.flag_bits & 0x800 else "cp437"


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except BROKEN as error:
        raise BadFile(name, f"damaged: {shown(str(error) or type(error).__name__, 200)}") from None


def unpacked(path: Path, source: FileRange) -> FileRange:
    """A tar archive in a gzip file, unpacked to a file without a name. BadFile if it is damaged, or is too large."""
    try:
        with source.stream() as packed, gzip.GzipFile(fileobj=packed) as stream:
            if stream.peek(_BLOCK)[257:262] != b"ustar":
                raise BadFile(path, "not a tar archive in a gzip file")
            return _poured(str(path), cast(BinaryIO, stream), None)
    except (*BROKEN, gzip.BadGzipFile) as error:
        raise BadFile(path, f"not a complete gzip file: {shown(str(error), 200)}") from None


def _poured(name: str, stream: BinaryIO, size: int | None) -> FileRange:
    """The bytes of a stream in a file: a small one in memory. size: what it has to be, None if that is not known."""
    if size is not None and size <= _SMALL:
        most, target = _SMALL, cast(BinaryIO, os.fdopen(os.memfd_create("unpacked", os.MFD_CLOEXEC), "w+b"))
    else:
        folder = Path(tempfile.gettempdir())
        most, target = shutil.disk_usage(folder).free // _SHARE, scratch_file(folder)
    done = 0
    try:
        while part := stream.read(_STEP):
            done += len(part)
            if done > most:
                raise BadFile(name, f"more than {binary_size(most)} when unpacked: there is no room for it")
            target.write(part)
        target.flush()
        if size is not None and done != size:
            raise ValueError(f"it has {done} bytes, the archive says {size}")
    except BaseException:
        target.close()
        raise
    return FileRange(Path(name), 0, done, target)
