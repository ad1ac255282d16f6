"""Limits the memory that onnxruntime may take to open a session on the CPU.

A model of 200 bytes can make it create an object for each of the 2^40 elements of a tensor that determines shapes.
"""

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.jobs.processes.cards import is_out_of_memory
from layerwise._tool.backends.limits.memory import VARIABLE, limit, room
from layerwise._tool.backends.model.expansion import check_functions
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.sizes import binary_size

_LARGEST = 16 << 20  # bytes of a model; larger ones are left to the limit of the whole process
_LEAST, _SHARE = 512 << 20, 32  # fraction of the limit
_PER_BYTE, _PER_EXTERNAL_BYTE, _PER_THREAD = 24, 8, 32 << 20
_BESIDE = 512 << 20  # what a comparison that observes layers meanwhile takes
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x00-\xff])")
_OPENING = ("MainThread", "open", "parse")  # threads that take little memory meanwhile


@contextmanager
def opening_room(model: Loadable, threads: int) -> Iterator[None]:
    """Limit what opening a session takes. LayerwiseError if that is not enough, or if the model's functions expand
    without bound. No limit is set while threads other than a comparison's own are running.
    """
    most = _room(model, threads)
    if most is None:
        yield
        return
    try:
        with room(most):
            yield
    except Exception as error:  # onnxruntime's errors share no base class
        if not is_out_of_memory(error):
            raise
        text = f"onnxruntime takes more than {binary_size(most)} to load it: a tensor in it is too large"
        hint = f"; {VARIABLE}=none lets it"
        raise (LayerwiseError(text + hint) if model.path is None else BadFile(model.path, text + hint)) from None


def _room(model: Loadable, threads: int) -> int | None:
    most = limit()
    data = _small(model)
    if data is None:
        return None
    check_functions(data)
    if most is None or any(not thread.name.startswith(_OPENING) for thread in threading.enumerate()):
        return None
    outside = _outside(data, model.data_folder())
    if outside is None:
        return None
    own = max(_LEAST, most // _SHARE) + _PER_BYTE * len(data)
    return own + _PER_EXTERNAL_BYTE * outside + _PER_THREAD * threads + _BESIDE


def _small(model: Loadable) -> bytes | None:
    """Return the model's bytes, None if there are many."""
    if model.data is not None:
        return model.data if len(model.data) <= _LARGEST else None
    if model.path is None or model.path.stat().st_size > _LARGEST:
        return None
    return read_file(model.path, _LARGEST)


def _outside(data: bytes, folder: Path | None) -> int | None:
    """Return the size of the files with external weights of a serialised model; None if unknown."""
    names: set[bytes] = set()
    for found in _LOCATION.finditer(data):
        length = found[1][0]
        if length > 127:
            return None
        names.add(data[found.end() : found.end() + length])
    return _sizes([folder / os.fsdecode(name) for name in names]) if folder is not None else 0


def _sizes(files: Sequence[Path]) -> int | None:
    try:
        return sum(file.stat().st_size for file in files)
    except (OSError, ValueError):
        return None
