"""Tests parts of a graph in a backend: whether they load and run, and what they compute; the inputs for that."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import onnx

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import NO_SPINNING, FeedSpec, RunnerSpec
from layerwise._tool.surgery.cut.pieces import Pieces, type_of
from layerwise._tool.surgery.feeds.planned import planned

NAME = "onnxruntime"
_WARNINGS = 2  # onnxruntime's severity
_NOISE = (  # as much is left as Polygraphy leaves: "Type " of "Type Error: ", a blank where a node was named
    (re.compile(r"^(onnxruntime cannot load the model|the ONNX reference evaluator cannot take this model): "), ""),
    (re.compile(r"^(Load model from .*? failed:|Failed to load model with error: |This is an invalid model\. )"), ""),
    (re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : "), ""),
    (re.compile(r"^In Node, \(.*\) -> \(.*\) , Error "), ""),
    (re.compile(r"^(Type |)Error: "), r"\1"),
    (re.compile(r"^Node \(.*?\) Op \(.*?\) \[\w+\] "), " "),
    (re.compile(r"^node '.*?' \(.*?\) failed( in the reference evaluator)?: "), ""),
)


@dataclass(frozen=True)
class Refusal:
    """Why a part failed. loaded: it did load, and failed when it ran."""

    reason: str
    loaded: bool


class Trial:
    """Tests parts in one backend. folder: base of the weights' external locations.

    Raises MissingDependency, UsageError and BadFile (a custom-op library) if the backend is unavailable.
    """

    def __init__(self, spec: RunnerSpec, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        options = {**spec.options, "arena": False}
        self._whole = msgspec.structs.replace(spec, options={**spec.options, "log_severity": _WARNINGS})
        self._alone = msgspec.structs.replace(spec.setting(*NO_SPINNING), threads=spec.threads or 1, options=options)

    def whole(self, data: bytes, feed: Mapping[str, Any] | None) -> Refusal | None:
        """Load a whole model, and run it once if there is a feed."""
        return _refused(self._attempt(self._whole, data, feed))

    def piece(
        self, pieces: Pieces, positions: Sequence[int], feed: Mapping[str, Any], gives: Sequence[str]
    ) -> dict[str, Any] | Refusal:
        """Return the outputs of the part: arrays, and lists of arrays for sequences."""
        data = pieces.build(positions, {name: declared(pieces, name, value) for name, value in feed.items()}, gives)
        result = self._attempt(self._alone, data, feed)
        if isinstance(result, IterationResult):
            return {name: value for name in gives if (value := _value(result.outputs, name)) is not None}
        return result or {}

    def loads(self, data: bytes) -> Refusal | None:
        """Load a part without running it."""
        return _refused(self._attempt(self._alone, data, None))

    def reference(self) -> "Trial":
        """The same in the ONNX reference evaluator."""
        return Trial(RunnerSpec(kind="reference"), self.folder)

    def _attempt(
        self, spec: RunnerSpec, data: bytes, feed: Mapping[str, Any] | None
    ) -> IterationResult | Refusal | None:
        try:
            runner = open_runner(spec, Loadable(data=data, folder=self.folder), name=NAME)
        except LayerwiseError as error:
            if _is_users(error, spec):
                raise
            return Refusal(plain(str(error)), loaded=False)
        with runner:
            try:
                return runner.infer(feed) if feed is not None else None
            except LayerwiseError as error:
                return Refusal(plain(str(error).removeprefix(f"{NAME}: ")), loaded=True)


def plain(reason: str) -> str:
    """Return a backend's reason without the node's name, which the finding contains already."""
    for pattern, instead in _NOISE:
        reason = pattern.sub(instead, reason)
    return reason


def _is_users(error: LayerwiseError, spec: RunnerSpec) -> bool:
    """Return whether the error is about the requested backend, not about the model."""
    libraries = map(Path, spec.custom_ops)
    return isinstance(error, MissingDependency | UsageError) or (
        isinstance(error, BadFile) and Path(error.path) in libraries
    )


def declared(pieces: Pieces, name: str, value: Any) -> onnx.TypeProto:
    """Return the type to feed a value as: a tensor's own, for others what the graph declares, if it does."""
    known = pieces.types.get(name, onnx.TypeProto())
    if known.WhichOneof("value") not in (None, "tensor_type"):
        return known
    return type_of(value) or known


def feedable(pieces: Pieces, name: str, value: Any) -> bool:
    """Return whether a value can be passed from one part to the next."""
    return bool(declared(pieces, name, value).WhichOneof("value"))


def _refused(result: IterationResult | Refusal | None) -> Refusal | None:
    return result if isinstance(result, Refusal) else None


def _value(outputs: Mapping[str, Any], name: str) -> Any:
    """Return an output; the elements of a sequence, which runners return separately, as a list; None if absent."""
    if name in outputs:
        return outputs[name]
    elements: list[Any] = []
    while f"{name}[{len(elements)}]" in outputs:
        elements.append(outputs[f"{name}[{len(elements)}]"])
    return elements


Say = Callable[[str], None]


def first_feed(
    spec: FeedSpec, pieces: Pieces, warn: Say, give_up: Say, log: Say | None = None
) -> Mapping[str, Any] | None:
    """Return one feed dict for a graph; None, and a reason to `give_up`, if none can be generated.

    `warn` gets what was assumed, `log` (or `warn`) what was chosen. UsageError if the user's inputs do not match.
    """
    wanted = set(pieces.inputs)
    inputs = tensor_infos(value for value in pieces.graph.input if value.name in wanted)
    if pieces.graph is pieces.model.graph:
        spec = planned(spec, lambda: pieces.model, warn, log)
    try:
        return next(iter(make_feeds(spec, inputs, warn)), None)
    except UsageError as error:
        if spec.files or spec.script or spec.shapes:
            raise
        give_up(f"not run, only loaded: {error}")
        return None
