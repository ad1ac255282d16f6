"""Exported programs: what torch.export.save wrote."""

import io
import logging
import warnings
import zipfile
from pathlib import Path
from typing import Any

from layerwise._tool.backends.dumps.packed import BROKEN
from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.archive import check_archive
from layerwise._tool.backends.torch.loaded import Loaded
from layerwise._tool.backends.torch.values import first_sentence

_BLOCK = 1 << 20


def load_program(path: Path) -> Loaded:
    """An exported program, with its sample inputs. BadFile where reading it would run code, or it cannot be read."""
    import torch

    if not path.is_file():
        raise BadFile(path, "is not a file")
    records = _records(path)
    _check_sums(path)
    check_archive(path, *records, _sample)
    logging.getLogger("torch.export").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(str(path))
    except Exception as error:
        raise BadFile(path, f"torch {torch.__version__} cannot read it: {shown(first_sentence(error), 300)}") from error
    program._guards_code = []  # text that torch would compile
    found = program.example_inputs or None
    args, kwargs = found if found else (None, {})
    return Loaded(_runnable(program), args, dict(kwargs), program)


def _runnable(program: Any) -> Any:
    try:
        return program.module()
    except Exception as error:
        raise LayerwiseError(f"the exported program cannot be run: {shown(first_sentence(error), 300)}") from error


def _records(path: Path) -> tuple[list[str], Any]:
    """The names of an archive's records, and what reads one: by torch's own reader, which sees what torch will see."""
    import torch

    try:
        reader = torch._C.PyTorchFileReader(str(path))
        names = list(reader.get_all_records())
    except RuntimeError as error:
        raise BadFile(path, f"is no archive of torch: {shown(first_sentence(error), 200)}") from None
    if not any(name.startswith("models/") for name in names):
        raise BadFile(path, "is not of the format that torch.export.save writes since torch 2.8: save it anew")
    return names, reader.get_record


def _check_sums(path: Path) -> None:
    """BadFile where a record is not what was written: torch does not look. It writes none that are compressed; of those
    it tells itself.
    """
    name = "its directory"
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = entry.filename
                if entry.compress_type == zipfile.ZIP_STORED:
                    with archive.open(entry) as record:
                        while record.read(_BLOCK):
                            pass
    except BROKEN:
        raise BadFile(path, f"is damaged: {shown(name, 120)} is not what was written") from None


def _sample(data: bytes) -> None:
    """ValueError unless these are tensors and plain values in lists and dicts."""
    import torch

    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        raise ValueError(str(error).splitlines()[0]) from None
