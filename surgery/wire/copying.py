"""Copies bytes from file to file without loading them."""

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 24


def copy_range(stream: BinaryIO, file: Path, offset: int, length: int) -> None:
    """Append the bytes [offset, offset + length) of `file` to `stream`. OSError if the file is shorter."""
    with file.open("rb") as source:
        done = _copied_by_kernel(stream, source, offset, length)
        source.seek(offset + done)
        while done < length:
            data = source.read(min(_CHUNK, length - done))
            if not data:
                raise OSError(f"{file} has become shorter")
            stream.write(data)
            done += len(data)


def _copied_by_kernel(stream: BinaryIO, source: BinaryIO, offset: int, length: int) -> int:
    """Copy bytes in the kernel (Linux, same file system); return how many: all, or fewer if it refuses."""
    if not hasattr(os, "copy_file_range") or length < _CHUNK >> 4:
        return 0
    stream.flush()
    done = 0
    with suppress(OSError):
        while done < length:
            count = os.copy_file_range(source.fileno(), stream.fileno(), length - done, offset + done)
            if not count:
                break
            done += count
    return done
