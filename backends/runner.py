"""Runners: one configured backend, ready to infer. Everything that runs a model goes through here."""

import importlib
import re
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import DTYPES, TensorInfo, dtype_name
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from typing_extensions import Self

_PREFIXES = {
    "onnxrt": "onnxrt-runner",
    "reference": "reference-runner",
    "saved": "saved-runner",
    "pluginref": "pluginref-runner",
    "trt": "trt-runner",
    "torch": "torch-runner",
    "extension": "extension-runner",
}
_PART = re.compile(r"(.+?)(?:\[\d+\](?:\[(?:keys|values)\])?|\[(?:keys|values)\])", re.DOTALL)
_DTYPE_NAMES = frozenset(row.name for row in DTYPES)
_MODULES = {  # each has open_<kind>
    "onnxrt": "layerwise._tool.backends.onnxrt.runner",
    "reference": "layerwise._tool.backends.reference.runner",
    "saved": "layerwise._tool.backends.saved",
    "pluginref": "layerwise._tool.backends.reference.runner",
    "trt": "layerwise._tool.backends.trt",
    "torch": "layerwise._tool.backends.torch.runner",
    "extension": "layerwise._tool.backends.extension",
}


class Loadable(Struct, frozen=True):
    """A model ready to be loaded: serialised ModelProto bytes, or a path.

    folder: base of external data locations; None is the folder of `path`.
    """

    data: bytes | None = None
    path: Path | None = None
    folder: Path | None = None

    def read(self) -> bytes:
        """Return the model's bytes without external data. BadFile if the file cannot be read."""
        if self.data is not None:
            return self.data
        if self.path is None:
            raise UsageError("a model is needed: neither bytes nor a path was given")
        return read_file(self.path)

    def data_folder(self) -> Path | None:
        """Return the folder of external data, None if unknown."""
        return self.folder or (self.path.parent if self.path else None)

    def beside(self) -> str:
        """Return a path in that folder, for parsers that look for external data beside a model."""
        return str((self.data_folder() or Path()) / "model.onnx")


class Placed(NamedTuple):
    """Where a node runs: its name and operator (not escaped), and the provider's short name."""

    node: str
    op: str
    provider: str


class Runner(Protocol):
    """A backend with a model loaded.

    inputs and outputs are those of the model, in its order. Results are arrays owned by the caller. engine_file: of the
    engine in use, None if there is none, or none on disk.
    """

    spec: RunnerSpec
    name: str
    inputs: list[TensorInfo]
    outputs: list[str]
    engine_file: str | None

    def infer(self, feed: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once. `outputs` selects among the model's outputs (None: all).

        UsageError if the feed does not match the inputs; LayerwiseError naming the node if the backend fails.
        """
        ...

    def elsewhere(self) -> list[Placed]:
        """Return the nodes that were placed on a provider other than the first requested one."""
        ...

    def fallbacks(self) -> list[str]:
        """Return `elsewhere` as text, one line per node."""
        ...

    def notes(self) -> list[str]:
        """Return caveats about the numbers, one sentence each."""
        ...

    def close(self) -> None:
        """Release memory and devices. May be called twice."""
        ...

    def __enter__(self) -> "Self": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class RunnerBase:
    """What all runners share."""

    name: str
    inputs: list[TensorInfo]
    outputs: list[str]
    engine_file: str | None = None

    def elsewhere(self) -> list[Placed]:
        return []

    def fallbacks(self) -> list[str]:
        return [f"{shown(at.node or '<unnamed>')} ({shown(at.op)}) on {at.provider}" for at in self.elsewhere()]

    def notes(self) -> list[str]:
        return []

    def close(self) -> None:
        pass

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_names(
    feed: Mapping[str, Any],
    inputs: Iterable[str],
    names: Sequence[str],
    outputs: Container[str],
    *,
    optional: Container[str] = (),
) -> None:
    """Raise UsageError unless the feed has all inputs and no others except `optional`, and `names` are outputs."""
    inputs = set(inputs)
    for what, wrong in (
        ("the feed lacks input", sorted(inputs - set(feed))),
        ("the model has no input", [name for name in feed if name not in inputs and name not in optional]),
        ("the model does not give output", [name for name in names if name not in outputs]),
    ):
        if wrong:
            listed = ", ".join(repr(shown(name, 120)) for name in wrong[:5])
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise UsageError(f"{what} {listed}{more}")


def check_feed_types(feed: Mapping[str, Any], inputs: Sequence[TensorInfo]) -> None:
    """Raise UsageError if an array of the feed has the wrong type; sequences and optionals pass."""
    for info in inputs:
        value = feed.get(info.name)
        if isinstance(value, np.ndarray) and info.dtype in _DTYPE_NAMES and dtype_name(value) != info.dtype:
            raise UsageError(f"input {shown(info.name)!r} is {info.dtype}, the feed has {dtype_name(value)}")


def flat_values(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Return a backend's value as arrays: a sequence as `name[0]`, `name[1]`, …; an absent one as none.

    A map becomes two arrays, `name[keys]`, in its order, and `name[values]`.
    """
    if value is None:
        return {}
    if isinstance(value, list):
        return {key: array for i, each in enumerate(value) for key, array in flat_values(f"{name}[{i}]", each).items()}
    if isinstance(value, dict):
        keys = sorted(value)
        kind = object if keys and isinstance(keys[0], str) else np.int64
        values = np.asarray([value[key] for key in keys])
        return {f"{name}[keys]": np.asarray(keys, kind), f"{name}[values]": values}
    return {name: np.asarray(value)}


def flat_outputs(values: Iterable[tuple[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return all values of a run like `flat_values`. LayerwiseError if two of them would have the same name."""
    found: dict[str, NDArray[Any]] = {}
    for name, value in values:
        for key, array in flat_values(name, value).items():
            if key in found:
                raise LayerwiseError(f"{shown(key, 120)!r} is an output and a part of another one: rename it")
            found[key] = array
    return found


def element_of(name: str) -> str:
    """Return the sequence or map that a name of `flat_values` may belong to, "" for other names."""
    match = _PART.fullmatch(name)
    return match[1] if match else ""


def runner_name(spec: RunnerSpec, index: int, when: time.struct_time) -> str:
    """Return the runner's name: the user's, or Polygraphy's form `onnxrt-runner-N0-11/20/26-22:48:09`.

    `index` counts the runners of this kind in one comparison, from 0.
    """
    if spec.name:
        return spec.name
    return f"{_PREFIXES[spec.kind]}-N{index}-{time.strftime('%x', when)}-{time.strftime('%X', when)}"


def open_runner(spec: RunnerSpec, model: Loadable, *, name: str = "") -> Runner:
    """Open the backend that `spec` describes on `model`; backends are imported only here.

    Raises MissingDependency, BadFile, UsageError or LayerwiseError, each with a remedy.
    """
    opener = _opener(spec.kind)
    if spec.kind != "saved":
        name = name or runner_name(spec, 0, time.localtime())
    return opener(spec, model, name=name)


def load_backend(kind: str) -> None:
    """Import a backend ahead of `open_runner`. UsageError for a kind that cannot be opened."""
    _opener(kind)


class _Open(Protocol):
    def __call__(self, spec: RunnerSpec, model: Loadable, *, name: str) -> Runner: ...


def _opener(kind: str) -> _Open:
    if kind not in _MODULES:
        raise UsageError(f"no runner of kind {kind!r} can be opened by this version")
    opener: _Open = getattr(importlib.import_module(_MODULES[kind]), f"open_{kind}")
    return opener
