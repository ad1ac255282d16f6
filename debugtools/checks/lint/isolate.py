"""Finds the nodes that fail, in time linear in the graph.

Nodes run in topological order, in chunks that are separate models, each fed by earlier ones. A failing chunk
is halved until single nodes fail; nodes that depend on failed ones are skipped, so several independent faults are
found in one pass. No node is in more than 8 chunks, and no chunk copies more than its own nodes. The bodies of a
control-flow node are tested alone, with the inputs of their first iteration.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.lint.report import Level, LintFindings, LintSource
from layerwise._tool.debugtools.checks.lint.structure import labels
from layerwise._tool.debugtools.checks.lint.trial import Refusal, Trial, feedable
from layerwise._tool.surgery.cut.pieces import Pieces

_BODY_ATTRIBUTES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


@dataclass(frozen=True)
class ProbedBody:
    """One body. feed: values of its own inputs, as far as known; runs: whether it would run with them."""

    attribute: str
    pieces: Pieces
    names: list[str]
    feed: dict[str, Any]
    runs: bool


def entered(outer: Pieces, position: int, feed: Mapping[str, Any], folder: Path) -> Iterator[ProbedBody]:
    """Yield the bodies of the node at `position`; `feed` has what the node reads, except weights (in `folder`)."""
    node = outer.nodes[position]
    feed = {**_weights(outer, node, folder), **feed}
    attributes = {attribute.name: attribute for attribute in node.attribute}
    for name in _BODY_ATTRIBUTES.get(node.op_type, ()) if node.domain in ("", "ai.onnx") else ():
        if name in attributes:
            graph = attributes[name].g
            own = [value.name for value in graph.input]
            first = _first_pass(node, attributes, feed)
            values = {inner: value for inner, value in zip(own, first, strict=False) if value is not None}
            runs = len(values) == len(own) and _taken(node, name, feed)
            yield ProbedBody(name, Pieces(outer.model, graph, outer), labels(graph.node), values, runs)


def _weights(outer: Pieces, node: onnx.NodeProto, folder: Path) -> dict[str, Any]:
    found = {}
    for name in filter(outer.is_weight, node.input):
        tensor = outer.weight(name)
        if tensor is not None:
            with suppress(LayerwiseError):  # a damaged weight: its readers have been reported
                found[name] = tensor_array(tensor, folder)
    return found


def _taken(node: onnx.NodeProto, attribute: str, feed: Mapping[str, Any]) -> bool:
    if node.op_type != "If":
        return True
    condition = feed.get(node.input[0]) if node.input else None
    return condition is not None and bool(np.asarray(condition).any()) == (attribute == "then_branch")


def _first_pass(
    node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], feed: Mapping[str, Any]
) -> Sequence[Any]:
    """Return the body's inputs in its first iteration, None for unknown ones."""
    if node.op_type == "Loop":
        states = [feed.get(name) for name in node.input[2:]]
        return [np.array(0, np.int64), np.array(True), *states]
    if node.op_type == "Scan":
        count = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
        split = max(0, len(node.input) - count)
        axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else []
        axes += [0] * (count - len(axes))
        slices = [_slice(feed.get(name), axis) for name, axis in zip(node.input[split:], axes, strict=False)]
        return [*(feed.get(name) for name in node.input[:split]), *slices]
    return []


def _slice(value: Any, axis: int) -> Any:
    if not isinstance(value, np.ndarray) or not -value.ndim <= axis < value.ndim or not value.shape[axis]:
        return None
    return np.asarray(np.take(value, 0, axis), order="C")


CHUNK = 64
Progress = Callable[[int, int, str], None]
_CUSTOM = ("No opset import for domain", "is not a registered function/op")
_NO_KERNEL = "Could not find an implementation for"


class Isolation:
    """Tests every node of a graph. feed: values of the graph's inputs, and for a body of its captures.

    runs: False for a branch that is not taken, where only load failures count. prefix: for node names.
    """

    def __init__(
        self,
        pieces: Pieces,
        names: Sequence[str],
        trial: Trial,
        report: LintFindings,
        feed: Mapping[str, Any],
        *,
        runs: bool = True,
        inner: bool = False,
        progress: Progress = lambda done, total, name: None,
    ) -> None:
        self.pieces, self.names, self.trial, self.report = pieces, names, trial, report
        self.live: dict[str, Any] = dict(feed)
        self._runs, self._inner, self._progress = runs, inner, progress
        self._place = {position: i for i, position in enumerate(pieces.order)}
        self._last = {name: i for i, position in enumerate(pieces.order) for name in pieces.reads[position]}

    def run(self) -> None:
        """Test all nodes; findings and verdicts go to the report."""
        order, total = self.pieces.order, len(self.pieces.order)
        for start in range(0, total, CHUNK):
            chunk = order[start : start + CHUNK]
            self._progress(start, total, self.names[chunk[0]])
            self._try(chunk)
            for name in [name for name in self.live if self._last.get(name, -1) < start + CHUNK]:
                del self.live[name]
        self._progress(total, total, "")

    def _try(self, positions: Sequence[int]) -> None:
        ready = self._ready(positions)
        if not ready:
            return
        feed = {name: self.live[name] for name in self.pieces.feeds(ready)}
        made = self.trial.piece(self.pieces, ready, feed, self._gives(ready))
        if isinstance(made, dict):
            self._take(ready, made)
        elif len(ready) == 1:
            self._refused(ready[0], feed, made)
        else:
            middle = len(ready) // 2
            self._try(ready[:middle])
            self._try(ready[middle:])

    def _ready(self, positions: Sequence[int]) -> list[int]:
        """Return those whose inputs are available, or made by others of them."""
        ready: list[int] = []
        made: set[str] = set()
        for position in positions:
            names = self.pieces.reads[position]
            outside = [name for name in names if name not in made and not self.pieces.is_weight(name)]
            if all(name in self.live for name in outside) and not self._unfeedable(position, outside):
                ready.append(position)
                made.update(filter(None, self.pieces.nodes[position].output))
        return ready

    def _unfeedable(self, position: int, names: Sequence[str]) -> bool:
        odd = [name for name in names if not feedable(self.pieces, name, self.live[name])]
        if odd:
            text = f"not checked: input '{shown(odd[0], 200)}' is no value that a node can be fed alone"
            self._note(Level.INFO, position, text)
        return bool(odd)

    def _gives(self, ready: Sequence[int]) -> list[str]:
        """Return what others will read, and what nobody reads (or it would not be run)."""
        end = self._place[ready[-1]]
        made = [name for position in ready for name in self.pieces.nodes[position].output if name]
        return [name for name in dict.fromkeys(made) if not 0 <= self._last.get(name, -1) <= end]

    def _take(self, ready: Sequence[int], made: Mapping[str, Any]) -> None:
        self.live.update((name, value) for name, value in made.items() if name in self._last)
        if not self._inner:
            for position in ready:
                self.report.passes(self.names[position])

    def _refused(self, position: int, feed: Mapping[str, Any], why: Refusal) -> None:
        if any(text in why.reason for text in _CUSTOM):
            self._note(Level.WARNING, position, why.reason)
            self._take([position], {})
        elif _NO_KERNEL in why.reason and self._stands_in(position, feed):
            self._note(Level.WARNING, position, f"{why.reason} (checked with the ONNX reference evaluator instead)")
        elif self._runs or not why.loaded:
            self._note(Level.EXCEPTION, position, why.reason)
            self._enter(position, feed)

    def _stands_in(self, position: int, feed: Mapping[str, Any]) -> bool:
        """Run a node in the reference evaluator whose type engines may have no kernel for (bfloat16, FP8, 4 bits)."""
        made = self.trial.reference().piece(self.pieces, [position], feed, self._gives([position]))
        if isinstance(made, Refusal):
            return False
        weights = [self.pieces.weights[name] for name in self.pieces.reads[position] if name in self.pieces.weights]
        kinds = {dtype_name(tensor.data_type) for tensor in weights}
        kinds |= {dtype_name(value) for value in (*feed.values(), *made.values()) if not isinstance(value, list)}
        if kinds.isdisjoint(EXTENDED_NAMES):
            return False
        self._take([position], made)
        return True

    def _enter(self, position: int, feed: Mapping[str, Any]) -> None:
        """Find the failing nodes in the bodies of a failed node."""
        for body in entered(self.pieces, position, feed, self.trial.folder):
            names = [f"{self.names[position]}/{body.attribute}/{name}" for name in body.names]
            values = {**feed, **body.feed}
            Isolation(
                body.pieces, names, self.trial, self.report, values, runs=self._runs and body.runs, inner=True
            ).run()

    def _note(self, level: Level, position: int, text: str) -> None:
        self.report.add(
            level, LintSource.ONNXRUNTIME, text, [self.names[position]], self.pieces.nodes[position].op_type
        )
