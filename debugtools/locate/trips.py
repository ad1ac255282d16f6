"""Running the body of an If, Loop or Scan trip by trip, on both sides with the reference's values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.debugtools.compare.sides.stream import observing
from layerwise._tool.debugtools.locate.part import Part

Array = NDArray[Any]
Values = Mapping[str, Array]
MOST_TRIPS = 10_000


class Body:
    """A body that can be run. outputs: what it gives, in the order of its graph; a name may occur twice."""

    def __init__(self, part: Part, outputs: Sequence[str]) -> None:
        self.part, self.outputs = part, list(outputs)
        self._runner: Runner | None = None

    def run(self, feed: Values) -> list[Array]:
        """The outputs, all in one run. LayerwiseError if it fails, or gives what is no tensor."""
        cut = self.part.cut
        made = [name for name in dict.fromkeys(self.outputs) if name in cut.maker]
        found: dict[str, Array] = dict(feed)
        if made:
            (segment,) = cut.segments(made, None)
            if self._runner is None:
                types = {name: to_onnx(dtype_name(feed[name])) for name in segment.feeds}
                model = Loadable(data=cut.build(segment, types), folder=self.part.folder)
                self._runner = open_runner(observing(self.part.spec), model, name=self.part.name)
            found |= self._runner.infer({name: feed[name] for name in segment.feeds}).outputs
        missing = [name for name in self.outputs if name not in found and name not in cut.initializers]
        if missing:
            raise LayerwiseError("the body gives a sequence or an optional, which cannot be fed to its next trip")
        return [found[name] if name in found else self.part.weight(name) for name in self.outputs]

    def close(self) -> None:
        """Close the session."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def trips(node: onnx.NodeProto, body: onnx.GraphProto, values: Values, reference: Body) -> Iterator[dict[str, Array]]:
    """Give what goes into the body's own inputs, trip by trip; the reference's body makes the state of the next.

    values: what the node reads, by name. LayerwiseError for what cannot be run trip by trip.
    """
    names = [value.name for value in body.input]
    if node.op_type == "If":
        yield {}
    elif node.op_type == "Loop":
        yield from _loop(node, names, values, reference)
    elif node.op_type == "Scan":
        yield from _scan(node, names, values, reference)


def _loop(node: onnx.NodeProto, names: Sequence[str], values: Values, reference: Body) -> Iterator[dict[str, Array]]:
    given = [values[name] if name else None for name in [*node.input, "", ""][: max(2, len(node.input))]]
    most = MOST_TRIPS if given[0] is None else min(MOST_TRIPS, int(given[0].reshape(())))
    go_on = given[1] is None or bool(given[1].reshape(()))
    state = [array for array in given[2:] if array is not None]
    for trip in range(most):
        if not go_on:
            return
        yield dict(zip(names, [np.array(trip, np.int64), np.array(go_on), *state], strict=True))
        made = reference.run(_all(values, names, [np.array(trip, np.int64), np.array(go_on), *state]))
        go_on, state = bool(made[0].reshape(())), made[1 : 1 + len(state)]


def _scan(node: onnx.NodeProto, names: Sequence[str], values: Values, reference: Body) -> Iterator[dict[str, Array]]:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if not a.HasField("g")}
    count = int(attributes["num_scan_inputs"])
    if len(names) != len(node.input):  # opset 8: a batch, and lengths as the first input
        raise LayerwiseError("a Scan of opset 8 runs over a batch: its body cannot be run by itself")
    state = [values[name] for name in node.input[: len(node.input) - count]]
    scanned = [values[name] for name in node.input[len(node.input) - count :]]
    axes = attributes.get("scan_input_axes") or [0] * count
    back = attributes.get("scan_input_directions") or [0] * count
    length = scanned[0].shape[axes[0]]
    for trip in range(min(length, MOST_TRIPS)):
        places = (length - 1 - trip if backwards else trip for backwards in back)
        slices = [np.take(a, at, axis) for a, at, axis in zip(scanned, places, axes, strict=True)]
        yield dict(zip(names, [*state, *slices], strict=True))
        state = reference.run(_all(values, names, [*state, *slices]))[: len(state)]


def _all(values: Values, names: Sequence[str], own: Sequence[Array]) -> dict[str, Array]:
    return {**values, **dict(zip(names, own, strict=True))}
