"""The tensors of one file of a dump: names, types and shapes from its header, values on request."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.members import Member, zip_members
from layerwise._tool.backends.dumps.torch_files import torch_tensors
from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.formats.dumps import DumpReader
from layerwise._tool.backends.formats.npy import HEAD, NpyHeader, header_size, parse_header, shape_array
from layerwise._tool.backends.results.inference import Stored
from layerwise._tool.backends.results.io import DumpedArray
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

Tensors = Mapping[str | None, Stored]
"""By their names in the file; None: the file is one tensor, and bears its name."""


def tensors(member: Member) -> Tensors:
    """What is in a file. BadFile if that is not what its name says."""
    kind = member.path.lower().rpartition(".")[2]
    try:
        return _READERS[kind](member)
    except LayerwiseError:
        raise
    except OSError as error:
        raise BadFile(member.name, error.strerror or str(error)) from error
    except (ValueError, OverflowError) as error:
        raise BadFile(member.name, in_words(error)) from None


def _npy(member: Member) -> Tensors:
    return {None: npy_tensor(member)}


def npy_tensor(member: Member) -> DumpedArray:
    """The array of an .npy file. ValueError if it is none."""
    header = parse_header(member.head(header_size(member.head(HEAD))))
    if member.size - header.size != header.nbytes:
        raise ValueError(f"holds {member.size - header.size} bytes of data, its shape needs {header.nbytes}")
    kind = header.kind or ("bfloat16" if header.dtype.kind == "V" and header.dtype.itemsize == 2 else None)
    name = "string" if header.dtype.kind == "U" else kind or dtype_name(header.dtype)
    return DumpedArray(name, header.shape, partial(_array, member, header, kind))


def _array(member: Member, header: NpyHeader, kind: str | None) -> Array:
    opened = member.opened()
    try:
        whole = opened.mapped(0, opened.size)
        member.check(whole.data)
        flat = whole[header.size :]
        if (opened.start + header.size) % max(1, header.dtype.alignment):
            flat = flat.copy()
        if not header.nbytes:
            return shape_array(np.empty(math.prod(header.shape), header.dtype), header, kind)
        return shape_array(flat.view(header.dtype), header, kind)
    except OSError as error:
        raise BadFile(member.name, error.strerror or str(error)) from error
    except ValueError as error:
        raise BadFile(member.name, in_words(error)) from None


def _npz(member: Member) -> Tensors:
    found: dict[str | None, Stored] = {}
    for path, inner in zip_members(Path(member.name), member.lasting(), keys=True):
        if isinstance(inner, str):
            raise BadFile(member.name, f"{shown(path, 200)} {inner}")
        key = path.removesuffix(".npy")
        if key in found:
            raise BadFile(member.name, f"{shown(key, 200)} is there twice")
        try:
            found[key] = npy_tensor(inner)
        except ValueError as error:
            raise BadFile(inner.name, in_words(error)) from None
    return found


def _safetensors(member: Member) -> Tensors:
    reader = DumpReader(member.name, member.lasting())
    return {name: DumpedArray(reader.dtype(name), reader.shape(name), partial(reader.array, name))
            for name in reader.names()}  # fmt: skip


_READERS: dict[str, Callable[[Member], Tensors]] = {
    "npy": _npy, "npz": _npz, "safetensors": _safetensors, "pt": torch_tensors, "pth": torch_tensors,
}  # fmt: skip
