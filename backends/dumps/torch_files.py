"""Tensors of files that torch.save wrote (its zip format, since torch 1.6). Nothing is unpickled, torch is not needed.

The zip holds `NAME/data.pkl`, a pickle of everything but the values, which `pickled` reads as plain data, and the bytes
of each storage as `NAME/data/KEY`. A tensor is a view of a storage: an offset and strides, in elements.
Format: https://docs.pytorch.org/docs/stable/notes/serialization.html
"""

import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.members import Member, zip_members
from layerwise._tool.backends.dumps.pickled import Strided, read_pickle
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.ranges import FileRange
from layerwise._tool.backends.limits.memory import limit, remedy
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.results.io import DumpedArray
from layerwise._tool.backends.sizes import binary_size
from layerwise._tool.backends.tensors import to_numpy
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # the pickled number that such a file begins with
_AGAIN = "save it again with torch 1.6 or newer, or as safetensors"
_MOST_PICKLED = 16 << 20  # bytes
_MOST_VALUES = 1 << 20  # of what is nested in lists and dicts
_DEPTH = 64


def torch_tensors(member: Member) -> Mapping[str | None, Stored]:
    """The tensors of a file by their names: `key`, `key.key`, `key[0]`, or None where it is one tensor.

    BadFile if it is no such file, or holds anything but dicts, lists and tuples of tensors and plain values.
    """
    head = member.head(16)
    if not head.startswith(b"PK"):
        old = head.startswith(_LEGACY[:14]) or head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04")
        what = "torch's format before 1.6, a plain pickle, which is never loaded" if old else "not a file of torch.save"
        raise BadFile(member.name, f"{what}: {_AGAIN}")
    files: dict[str, Member] = {}
    for path, inner in zip_members(Path(member.name), member.lasting()):
        if isinstance(inner, str):
            raise BadFile(member.name, f"{shown(path, 200)} {inner}")
        if files.setdefault(path, inner) is not inner:
            raise BadFile(member.name, f"{shown(path, 200)} is there twice")
    return _Archive(member.name, files).tensors()


class _Archive:
    def __init__(self, name: str, files: Mapping[str, Member]) -> None:
        self._name, self._files = name, files
        found = [path for path in files if path.count("/") == 1 and path.endswith("/data.pkl")]
        if len(found) != 1:
            raise BadFile(name, f"not a file of torch.save: it has no data.pkl; {_AGAIN}")
        self._root = found[0].removesuffix("data.pkl")
        if f"{self._root}constants.pkl" in files:
            raise BadFile(name, "a TorchScript module or an exported program, not saved tensors")
        order = self._text("byteorder") or "little"
        if order not in ("little", "big"):
            raise BadFile(name, f"byte order {shown(order, 40)!r} is not known")
        self._big = order == "big"
        self._sums, self._right = False, set[str]()

    def _text(self, path: str) -> str:
        member = self._files.get(self._root + path)
        return member.head(64).decode("ascii", "replace").strip() if member else ""

    def tensors(self) -> dict[str | None, Stored]:
        member = self._files[f"{self._root}data.pkl"]
        if member.size > _MOST_PICKLED:
            raise BadFile(self._name, f"its pickle has {binary_size(member.size)}, more than any list of tensors has")
        source = member.opened()
        data = source.read(0, source.size)
        self._sums = member.crc == zlib.crc32(data)
        value = read_pickle(self._name, data)
        found: dict[str | None, Stored] = {}
        for key, tensor in _Nested(self._name).walk(value):
            if key in found:
                raise BadFile(self._name, f"{shown(str(key), 200)} is there twice")
            found[key] = self._stored(key, tensor)
        if not found:
            raise BadFile(self._name, "holds no tensor")
        return found

    def _stored(self, key: str | None, tensor: Strided) -> DumpedArray:
        where = f"tensor {shown(str(key), 80)}: " if key else ""
        member = self._files.get(f"{self._root}data/{tensor.key}")
        if member is None:
            raise BadFile(self._name, f"{where}its storage {shown(tensor.key, 40)} is not there")
        dtype = to_numpy(tensor.dtype)
        if tensor.end * dtype.itemsize > member.size:
            raise BadFile(self._name, f"{where}lies outside of its storage of {member.size} bytes")
        most = limit()
        if most is not None and tensor.size * dtype.itemsize > max(most, member.size):
            told = binary_size(tensor.size * dtype.itemsize)
            raise BadFile(self._name, f"{where}takes {told}: {remedy(most)}")
        return DumpedArray(tensor.dtype, tensor.shape, partial(self._array, member, tensor))

    def _array(self, member: Member, tensor: Strided) -> Array:
        dtype = to_numpy(tensor.dtype)
        if not tensor.size:
            return np.empty(tensor.shape, dtype)
        try:
            source = member.opened()
            self._check(member, source)
            start = tensor.offset * dtype.itemsize
            raw = source.mapped(start, tensor.end * dtype.itemsize - start)
        except (OSError, ValueError) as error:
            raise BadFile(self._name, in_words(error)) from None
        if self._big:
            raw = _swapped(raw, dtype)
        elif (source.start + start) % dtype.alignment:
            raw = raw.copy()
        steps = tuple(step * dtype.itemsize for step in tensor.strides)
        array = np.lib.stride_tricks.as_strided(raw.view(dtype), tensor.shape, steps, writeable=False)
        array = np.conj(array) if tensor.conj else array
        return np.negative(array) if tensor.neg else array

    def _check(self, member: Member, source: FileRange) -> None:
        """ValueError if a storage is not what was written. Each is looked at once; none where the pickle's own checksum
        is another too: then the file was written without (torch.serialization.set_crc32_options).
        """
        if member.path in self._right:
            return
        if self._sums:
            member.check(source.mapped(0, source.size).data)
        self._right.add(member.path)


def _swapped(raw: Array, dtype: np.dtype[Any]) -> Array:
    """Big-endian bytes as this machine has them; both parts of a complex number by themselves."""
    unit = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return np.ascontiguousarray(raw.reshape(-1, unit)[:, ::-1]).reshape(-1)


class _Nested:
    """Goes through dicts, lists and tuples; what else is there (numbers, texts, None) is no tensor."""

    def __init__(self, name: str) -> None:
        self._name, self._left = name, _MOST_VALUES

    def walk(self, value: Any, key: str | None = None, depth: int = 0) -> Iterator[tuple[str | None, Strided]]:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise BadFile(self._name, "its lists and dicts are nested too deeply, or hold each other")
        if isinstance(value, Strided):
            yield key, value
        elif isinstance(value, dict):
            for name, each in value.items():
                yield from self.walk(each, _text(name) if key is None else f"{key}.{_text(name)}", depth + 1)
        elif isinstance(value, list | tuple):
            for number, each in enumerate(value):
                yield from self.walk(each, f"{key or ''}[{number}]", depth + 1)


def _text(name: object) -> str:
    return name if isinstance(name, str) else str(name)[:200]
