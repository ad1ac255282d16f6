"""The file that keeps a baseline: JSON lines, one a layer in topological order, so that a diff shows what changed.

The first lines say what it is (with the version of the format), what it was made with, the comparison, its models and
its inputs. Numbers have four digits, and names are ASCII with escapes.
"""

import json
import math
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import read_file, write_named
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.baseline.rows import Baseline, KeptLayer, Machine

VERSION = 1
KIND = "baseline"
_MOST = 256 << 20
_DIGITS = 4


class _Head(msgspec.Struct, frozen=True):
    layerwise: str
    version: int


class _Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machine: Machine


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    request: dict[str, Any]


class _Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: list[str]
    feeds: list[str]


def baseline_text(baseline: Baseline) -> str:
    """The lines of a file."""
    head: list[object] = [
        _Head(KIND, VERSION), _Made(baseline.machine), _Request(baseline.request),
        _Inputs(baseline.models, baseline.feeds),
    ]  # fmt: skip
    return "".join(f"{_line(item)}\n" for item in [*head, *baseline.layers])


def save_baseline(path: Path, baseline: Baseline) -> None:
    """Write a file. OSError; Unwritable if none can be made there."""
    write_named(path, baseline_text(baseline))


def _line(item: object) -> str:
    found = _rounded(msgspec.to_builtins(item))
    if found.get("pair") == [0, 1]:
        del found["pair"]
    return json.dumps(found, allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def load_baseline(path: Path) -> Baseline:
    """Read a file. BadFile if it cannot be read, is no baseline, is of a newer format, or is damaged."""
    lines = read_file(path, _MOST).splitlines()
    head = _read(path, lines, 0, _Head, "not a baseline of Layerwise")
    if head.layerwise != KIND:
        raise BadFile(path, f"not a baseline of Layerwise, but {shown(head.layerwise, 60)!r}")
    if head.version > VERSION:
        raise BadFile(
            path, f"made by a newer Layerwise: its format is version {head.version}, this one reads up to {VERSION}"
        )
    if head.version != VERSION:
        raise BadFile(path, f"there is no version {head.version} of the format")
    damaged = "damaged"
    made = _read(path, lines, 1, _Made, damaged)
    request = _read(path, lines, 2, _Request, damaged)
    inputs = _read(path, lines, 3, _Inputs, damaged)
    layers = [_read(path, lines, number, KeptLayer, damaged) for number in range(4, len(lines))]
    _check(path, layers)
    return Baseline(made.machine, request.request, inputs.models, inputs.feeds, layers)


def _read(path: Path, lines: list[bytes], number: int, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(lines[number], type=kind)
    except IndexError:
        raise BadFile(path, f"{what}: it ends before line {number + 1}") from None
    except msgspec.ValidationError as error:
        raise BadFile(path, f"{what}: line {number + 1}: {in_words(error, 200)}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadFile(path, f"{what}: line {number + 1} is not JSON: {in_words(error, 200)}") from None


def _check(path: Path, layers: list[KeptLayer]) -> None:
    if not layers:
        raise BadFile(path, "damaged: it holds no layer")
    seen = set()
    for number, layer in enumerate(layers, 5):
        numbers = (layer.error, layer.limit, layer.peak, layer.peak_limit, layer.rms)
        if any(value is not None and not (math.isfinite(value) and value >= 0) for value in numbers):
            raise BadFile(path, f"damaged: line {number}: an error or a limit that is none")
        if (layer.pair, layer.layer) in seen:
            raise BadFile(path, f"damaged: line {number}: {shown(layer.layer, 120)!r} is there twice")
        seen.add((layer.pair, layer.layer))
