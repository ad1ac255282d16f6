"""Tactics that TensorRT chose for each layer: reading files of both kinds, printing, comparing builds.

Polygraphy's replays (TensorRT up to 10): {"replay": {layer: Algorithm}}, see
`polygraphy.backend.trt.algorithm_selector`; data types stay text ("DataType.FLOAT"), so that TensorRT is not needed
to read them. Records of an editable timing cache: `backends.trt.tactics.record`.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.json_format import load
from layerwise._tool.backends.results.io import DECODERS
from layerwise._tool.backends.trt.tactics.record import TacticRecord, decode_record, read_bounded


@dataclass(frozen=True)
class TacticTensor:
    """The format of one input or output of an algorithm. strides: in elements. The last two are None before 8.6."""

    dtype: str
    strides: tuple[int, ...]
    vectorized_dim: int | None
    components_per_element: int | None

    def __str__(self) -> str:
        return f"TensorInfo({self.dtype}, {self.strides}, {self.vectorized_dim}, {self.components_per_element})"

    __repr__ = __str__


@dataclass(frozen=True)
class Algorithm:
    """TensorRT's choice for a layer."""

    implementation: int
    tactic: int
    inputs: tuple[TacticTensor, ...]
    outputs: tuple[TacticTensor, ...]

    @property
    def brief(self) -> str:
        """Return what distinguishes implementations, apart from formats."""
        return f"(Implementation: {self.implementation}, Tactic: {self.tactic})"

    def fields(self) -> dict[str, Any]:
        """Return the same for machines, with formats."""
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        tensors = {name: [{**vars(t), "strides": list(t.strides)} for t in side] for name, side in sides.items()}
        return {"implementation": self.implementation, "tactic": self.tactic, **tensors}

    def __str__(self) -> str:
        return f"{self.brief} | Inputs: {self.inputs} | Outputs: {self.outputs}"


@dataclass(frozen=True)
class CacheTactic:
    """An operation's tactic from an editable timing cache. tactic: hash that identifies the implementation."""

    tactic: str
    kernel: str = field(default="", compare=False)

    @property
    def brief(self) -> str:
        """The same as the whole."""
        return f"(Tactic: {self.tactic}, Kernel: {self.kernel or 'not named'})"

    def fields(self) -> dict[str, Any]:
        """Return the same for machines."""
        return {"tactic": self.tactic, "kernel": self.kernel}

    def __str__(self) -> str:
        return self.brief

    __repr__ = __str__


Choice = Algorithm | CacheTactic


@dataclass(frozen=True)
class TacticReplay:
    """Choices by layer name, in file order."""

    layers: Mapping[str, Choice]

    def lines(self) -> Iterator[str]:
        """Yield the lines that `polygraphy inspect tactics` prints; names as in the file."""
        for name, algorithm in self.layers.items():
            yield f"Layer: {name}"
            yield f"    Algorithm: {algorithm}"


def load_replay(path: str | os.PathLike[str]) -> TacticReplay:
    """Read a tactic replay, or a record of tactics as one. BadFile if the file is neither."""
    record = decode_record(read_bounded(Path(path)))
    if record is not None:
        return TacticReplay(dict(choices(record)))
    found = load(path, REPLAY_DECODERS)
    if not isinstance(found, TacticReplay):
        raise BadFile(path, "not a tactic replay (as --save-tactics writes them)")
    return found


def choices(record: TacticRecord) -> Iterator[tuple[str, CacheTactic]]:
    """Yield (name, choice) of a record's operations; duplicate names get their keys appended."""
    names = Counter(op.name for op in record.ops.values())
    for key, op in record.ops.items():
        yield op.name if names[op.name] == 1 else f"{op.name} ({key})", CacheTactic(op.tactic, op.kernel)


def load_replays(path: Path) -> tuple[dict[str, dict[Choice, None]], list[Path], list[Path]]:
    """Read a replay, or all in a folder: layer -> its algorithms, the files read, and other files."""
    layers: dict[str, dict[Choice, None]] = {}
    read: list[Path] = []
    skipped: list[Path] = []
    for file in _files(path):
        try:
            replay = load_replay(file)
        except (BadFile, OSError):
            skipped.append(file)
            continue
        read.append(file)
        for name, algorithm in replay.layers.items():
            layers.setdefault(name, {})[algorithm] = None
    return layers, read, skipped


def potentially_bad(
    good: Mapping[str, Mapping[Choice, None]], bad: Mapping[str, Mapping[Choice, None]]
) -> dict[str, list[Choice]]:
    """Return, by layer, the algorithms that occur in bad builds only."""
    found = {name: [a for a in algorithms if a not in good.get(name, {})] for name, algorithms in bad.items()}
    return {name: algorithms for name, algorithms in found.items() if algorithms}


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def _tensor(fields: dict[str, Any]) -> TacticTensor:
    dtype, strides = fields["dtype"], fields["strides"]
    extra = (fields.get("vectorized_dim"), fields.get("components_per_element"))
    numbers = [*strides, *(value for value in extra if value is not None)]
    if not isinstance(dtype, str) or not isinstance(strides, list) or not all(type(n) is int for n in numbers):
        raise ValueError("a TensorInfo is not what it should be")
    return TacticTensor(dtype, tuple(strides), *extra)


def _algorithm(fields: dict[str, Any]) -> Algorithm:
    numbers = fields["implementation"], fields["tactic"]
    sides = tuple(fields["inputs"]), tuple(fields["outputs"])
    if not all(type(n) is int for n in numbers) or not all(isinstance(t, TacticTensor) for s in sides for t in s):
        raise ValueError("an Algorithm is not what it should be")
    return Algorithm(*numbers, *sides)


def _replay(fields: dict[str, Any]) -> TacticReplay:
    layers = fields["replay"]
    if not isinstance(layers, dict) or not all(isinstance(item, Algorithm) for item in layers.values()):
        raise ValueError("a replay is not what it should be")
    return TacticReplay(layers)


REPLAY_DECODERS = {**DECODERS, "TensorInfo": _tensor, "Algorithm": _algorithm, "TacticReplayData": _replay}
