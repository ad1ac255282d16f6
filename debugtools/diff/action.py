"""Comparing two files by what they are; the job action `diff`."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.formats.json_format import load
from layerwise._tool.backends.formats.json_text import read_json
from layerwise._tool.backends.results.inference import RunResults, Stored
from layerwise._tool.backends.results.io import load_any
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.diff.files import diff_bytes, diff_folders, diff_replays
from layerwise._tool.debugtools.diff.models import diff_models
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec
from layerwise._tool.debugtools.diff.tensors import diff_inputs, diff_results
from layerwise._tool.debugtools.engines.tactics import REPLAY_DECODERS, TacticReplay, load_replay

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_NAMES = {
    "results": "saved outputs", "inputs": "saved inputs", "model": "an ONNX model", "tactics": "a tactic replay",
    "json": "JSON", "bytes": "a file of another kind", "folder": "a folder",
}  # fmt: skip
_ABSENT = object()
_PLAIN = (str, int, float, bool, type(None))
_Found = tuple[str, Any, Any]


def diff_json(a: Path, b: Path) -> DiffOutcome:
    """Compare two JSON files. The order of keys does not matter. BadFile if one cannot be read."""
    outcome = DiffOutcome("json")
    changed, first, second = (
        outcome.section("values that differ", "changed"),
        outcome.section("only in the first", "only_a"),
        outcome.section("only in the second", "only_b"),
    )
    one, other = read_json(a), read_json(b)
    for place, x, y in _differences(one, other):
        if y is _ABSENT:
            first.add(f"{shown(place, 200)}: {_text(x)}", place=place, value=_bare(x))
        elif x is _ABSENT:
            second.add(f"{shown(place, 200)}: {_text(y)}", place=place, value=_bare(y))
        else:
            changed.add(f"{shown(place, 200)}: {_text(x)} → {_text(y)}", place=place, a=_bare(x), b=_bare(y))
    counts = [len(section.items) for section in (changed, first, second)]
    outcome.summary = "equal" if outcome.equal else (
        f"documents differ: {counts[0]} values differ, {counts[1]} are only in the first, {counts[2]} in the second"
    )  # fmt: skip
    if outcome.equal and one in ([], {}):
        outcome.nothing_compared("both documents are empty")
    return outcome


def _differences(a: Any, b: Any) -> Iterator[_Found]:
    waiting: list[_Found] = [("$", a, b)]
    while waiting:
        place, x, y = waiting.pop()
        if isinstance(x, dict) and isinstance(y, dict):
            keys = dict.fromkeys([*x, *y])
            inner = [(f"{place}.{key}", x.get(key, _ABSENT), y.get(key, _ABSENT)) for key in keys]
        elif isinstance(x, list) and isinstance(y, list):
            inner = [(f"{place}[{i}]", _at(x, i), _at(y, i)) for i in range(max(len(x), len(y)))]
        else:
            if not _same(x, y):
                yield place, x, y
            continue
        waiting += reversed(inner)


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _ABSENT


def _same(x: Any, y: Any) -> bool:
    """Equal, and of one type but for numbers; NaN is NaN."""
    numbers = all(type(value) in (int, float) for value in (x, y))
    return (numbers or type(x) is type(y)) and bool(x == y or (x != x and y != y))


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'object' if isinstance(value, dict) else 'list'} of {len(value)}"
    return shown(json.dumps(value, ensure_ascii=False), 120)


def _bare(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else _text(value)


@dataclass(frozen=True)
class DiffFile:
    """One of the two. content: what was loaded to tell the kind, where that is all there is to load."""

    path: Path
    kind: str
    content: Any = None


def diff(context: "JobContext") -> dict[str, Any]:
    """Compare the files that `context.params` names (a DiffSpec).

    Lines of text are log events of level "out". Result: passed (they are equal), and the outcome's kind, summary and
    differences. BadFile for what cannot be read, UsageError for two kinds that do not go together.
    """
    spec = read_spec(context.params, DiffSpec, "what to compare")
    outcome = diff_files(spec)
    for line in (outcome.summary, *outcome.lines(20)):
        context.log(line, "out")
    return {"passed": outcome.equal, **outcome.to_json()}


def diff_files(spec: DiffSpec) -> DiffOutcome:
    """Compare two files or folders. Raises as `diff`."""
    first, second = Path(spec.a), Path(spec.b)
    if spec.as_bytes:
        folders = first.is_dir(), second.is_dir()
        if all(folders):
            return diff_folders(first, second)
        return diff_bytes(first, second)
    a, b = _side(first), _side(second)
    kinds = {a.kind, b.kind}
    if len(kinds) > 1 and kinds <= {"json", "tactics"}:  # an empty replay is plain JSON too
        return diff_json(first, second)
    if len(kinds) > 1:
        text = " and ".join(f"{shown(str(side.path), 200)} is {_NAMES[side.kind]}" for side in (a, b))
        raise UsageError(f"{text}: they can only be compared byte by byte (--bytes)")
    return _compared(a, b, spec)


def _compared(a: DiffFile, b: DiffFile, spec: DiffSpec) -> DiffOutcome:
    if a.kind == "model":
        return diff_models(spec)
    if a.kind == "results":
        return diff_results(a.content, b.content, spec)
    if a.kind == "inputs":
        return diff_inputs(a.content, b.content, spec)
    if a.kind == "tactics":
        return diff_replays(a.content, b.content)
    if a.kind == "json":
        return diff_json(a.path, b.path)
    return diff_folders(a.path, b.path) if a.kind == "folder" else diff_bytes(a.path, b.path)


def _side(path: Path) -> DiffFile:
    if path.is_dir():
        with suppress(BadFile):  # no folder of iterations
            return _data(path, load_any(path), "folder")
        return DiffFile(path, "folder")
    suffix, head = path.suffix.lower(), _head(path)
    if suffix == ".onnx":
        return DiffFile(path, "model")
    if suffix in (".safetensors", ".npz"):
        return _data(path, load_any(path), "bytes")
    return _json_side(path) if head.lstrip()[:1] in (b"{", b"[") else DiffFile(path, "bytes")


def _json_side(path: Path) -> DiffFile:
    try:
        found = load(path, REPLAY_DECODERS)
    except BadFile as error:
        return DiffFile(path, "bytes" if "not valid JSON" in error.reason else "json")
    if isinstance(found, TacticReplay):
        return DiffFile(path, "tactics", found)
    if isinstance(found, dict) and found.get("layerwise") == "tactics":
        return DiffFile(path, "tactics", load_replay(path))
    return _data(path, [found] if isinstance(found, dict) else found, "json")


def _data(path: Path, found: Any, other: str) -> DiffFile:
    """The kind of loaded data: results, inputs, or `other`."""
    if isinstance(found, RunResults):
        return DiffFile(path, "results", found)
    if isinstance(found, list) and found and all(map(_is_feed, found)):
        return DiffFile(path, "inputs", found)
    return DiffFile(path, other)


def _is_feed(value: Any) -> bool:
    """Whether it is a dict of arrays, one at least."""
    arrays = list(value.values()) if isinstance(value, dict) else []
    return bool(arrays) and all(isinstance(array, Stored | np.ndarray) for array in arrays)


def _head(path: Path) -> bytes:
    """The first bytes of a regular file. BadFile if it is none."""
    fd = open_regular(path)
    try:
        return os.pread(fd, 256, 0)
    finally:
        os.close(fd)
