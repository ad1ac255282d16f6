"""Looking into the body of an If, Loop or Scan: which of its nodes is at fault, in which trip."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.tensors import dtype_name, to_onnx
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.observing.store import ArrayStore
from layerwise._tool.debugtools.compare.sides.stream import SessionPool, observing
from layerwise._tool.debugtools.locate.bodies import same_names, with_inputs_of, with_names_of
from layerwise._tool.debugtools.locate.body_errors import BodyErrors
from layerwise._tool.debugtools.locate.differences import Differences
from layerwise._tool.debugtools.locate.part import LocalRuns, Part
from layerwise._tool.debugtools.locate.points import Point
from layerwise._tool.debugtools.locate.rows import Inside, SuspectRow
from layerwise._tool.debugtools.locate.suspects import Suspect, Suspects, diagnose, evidence, suspect_row
from layerwise._tool.debugtools.locate.tensor_error import error_of
from layerwise._tool.debugtools.locate.walk import Met, Reference, Walk
from layerwise._tool.surgery.cut.explode import Exploder
from layerwise._tool.surgery.cut.segments import CONTROL_FLOW, bodies, body_graph

Values = Mapping[str, Array]
_NONE, _SMALL, _BEYOND = range(3)
_DEEPEST = 8
_TOLD = 3
MOST_TRIPS = 10_000


class BodyRunner:
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
            lacking = [name for name in segment.feeds if name not in feed]
            if lacking:
                raise LayerwiseError(f"a body reads {shown(lacking[0])}, which has no counterpart on the other side")
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


def trips(node: onnx.NodeProto, body: onnx.GraphProto, values: Values, reference: BodyRunner) -> Iterator[Values]:
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


def _loop(node: onnx.NodeProto, names: Sequence[str], values: Values, reference: BodyRunner) -> Iterator[Values]:
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


def _scan(node: onnx.NodeProto, names: Sequence[str], values: Values, reference: BodyRunner) -> Iterator[Values]:
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


@dataclass(frozen=True)
class NodePair:
    """A node of the suspect's graph and the one that stands for it in the reference's, with the graphs.

    rename: the reference's name of a tensor of the suspect's.
    """

    mine: Part
    theirs: Part
    node: onnx.NodeProto
    other: onnx.NodeProto
    rename: Callable[[str], str]

    def values(self, given: Values) -> tuple[Values, Values]:
        """What both nodes read: the reference's tensors that are `given`, each side's own weights."""
        renamed = {self.rename(name): array for name, array in given.items()}
        return {**self.mine.weights(self.node), **given}, {**self.theirs.weights(self.other), **renamed}


def enter(pair: NodePair, suspect: Suspect, walk: Walk, depth: int = 0) -> Inside | None:
    """Look into the node that makes the tensor last met, if it has a body; the suspect's `inside`."""
    if pair.node.op_type not in CONTROL_FLOW:
        return None
    if len(suspect.region) > 1:
        return Inside(note="the tensor is made by several nodes; the body is not looked into")
    return look_inside(pair, walk.inputs(suspect.tensor), depth)


def look_inside(pair: NodePair, values: Values, depth: int = 0) -> Inside:
    """Find what is at fault in the body of a control-flow node.

    values: the reference's tensors that the node reads, by the suspect's names.
    """
    if pair.node.op_type != pair.other.op_type:
        return Inside(note=f"the reference has {pair.other.op_type} here, whose body is another")
    if depth >= _DEEPEST:
        return Inside(note=f"bodies are nested more than {_DEEPEST} deep")
    try:
        return _search(pair, pair.values(values), depth)
    except LayerwiseError as error:
        return Inside(note=str(error))


def _search(pair: NodePair, values: tuple[Values, Values], depth: int) -> Inside:
    """Run the body trip by trip until the sides part, and look there."""
    name, mine, theirs = _graphs(pair, values[1])
    if not same_names(mine, theirs):
        theirs = _called_alike(pair, mine, with_inputs_of(mine, theirs), values)
    parts = _parts(pair, mine, theirs, values)
    with ExitStack() as stack:
        both = [_runner(part, [o.name for o in graph.output], stack)
                for part, graph in zip(parts, (mine, theirs), strict=True)]  # fmt: skip
        small: tuple[int, tuple[Values, Values]] | None = None
        trip = -1
        for trip, own in enumerate(trips(pair.other, theirs, values[1], both[1])):
            feeds = {**values[0], **own}, {**values[1], **own}
            how = _divergence(both, feeds)
            if how == _BEYOND:
                return _told(name, trip, _locate(parts[0], parts[1], feeds, pair.rename, depth))
            if how == _SMALL and small is None:
                small = trip, feeds
        if small is not None:
            return _told(name, small[0], _locate(parts[0], parts[1], small[1], pair.rename, depth))
    limit = f" (the first {MOST_TRIPS} were tried)" if trip + 1 == MOST_TRIPS else ""
    return Inside(name, note=f"on the reference's values the body agrees in all of {trip + 1} trips{limit}")


def _told(name: str, trip: int, rows: list[SuspectRow]) -> Inside:
    note = "" if rows else f"trip {trip} goes wrong, in tensors that have no counterpart in the reference's body"
    return Inside(name, trip, rows, note)


def _called_alike(
    pair: NodePair, mine: onnx.GraphProto, theirs: onnx.GraphProto, values: tuple[Values, Values]
) -> onnx.GraphProto:
    """The reference's body under the names of the suspect's; the first trip's values tell which is which."""
    parts = _parts(pair, mine, theirs, values)
    with ExitStack() as stack:
        results = _runner(parts[1], [o.name for o in theirs.output], stack)
        own = next(trips(pair.other, theirs, values[1], results), {})
        seen: list[Values] = []
        for part, given in zip(parts, values, strict=True):
            feed = {**given, **own}
            opaque = _opaque(part, feed)
            names = [name for node in part.cut.nodes for name in node.output if name and name not in opaque]
            seen.append({**feed, **dict(zip(names, _runner(part, names, stack).run(feed), strict=True))})
    return with_names_of(mine, theirs, parts, seen)


def _parts(pair: NodePair, mine: onnx.GraphProto, theirs: onnx.GraphProto, values: tuple[Values, Values]) -> list[Part]:
    return [_part(*which) for which in ((pair.mine, mine, values[0]), (pair.theirs, theirs, values[1]))]


def _runner(part: Part, outputs: Sequence[str], stack: ExitStack) -> BodyRunner:
    body = BodyRunner(part, outputs)
    stack.callback(body.close)
    return body


def _part(outer: Part, body: onnx.GraphProto, values: Values) -> Part:
    types = {name: to_onnx(dtype_name(array)) for name, array in values.items()}
    return Part(body_graph(outer.cut, body, types), outer.folder, outer.spec, outer.name)


def _graphs(pair: NodePair, values: Values) -> tuple[str, onnx.GraphProto, onnx.GraphProto]:
    """The body that runs, on both sides."""
    mine, theirs = dict(bodies(pair.node)), dict(bodies(pair.other))
    name = "body"
    if pair.other.op_type == "If":
        name = "then_branch" if bool(values[pair.other.input[0]].reshape(())) else "else_branch"
    if name not in mine or name not in theirs:
        raise LayerwiseError(f"there is no {name} on both sides")
    return name, mine[name], theirs[name]


def _divergence(both: Sequence[BodyRunner], feeds: tuple[Values, Values]) -> int:
    """How far the outputs of a trip are apart: not at all, less than rounding explains, beyond it."""
    expected = both[1].run(feeds[1])
    try:
        found = both[0].run(feeds[0])
    except LayerwiseError:
        return _BEYOND
    if len(found) != len(expected):
        return _BEYOND
    pairs = [(a, b) for a, b in zip(found, expected, strict=True) if not same_bits(a, b)]
    depth = max(both[1].part.cut.depth, default=1)
    return _BEYOND if any(error_of(a, b, (), depth).beyond for a, b in pairs) else _SMALL if pairs else _NONE


def _locate(
    mine: Part, theirs: Part, feeds: tuple[Values, Values], rename: Callable[[str], str], depth: int
) -> list[SuspectRow]:
    """Rows of the body's suspects, worst first."""
    suspects = Suspects()
    with ExitStack() as stack:
        walk = _walk(mine, theirs, feeds, stack)
        errors = BodyErrors(mine, theirs, feeds[0])
        for met in walk:
            suspect = _read(met, walk, mine, errors)
            if suspect is None:
                continue
            node, other = (part.cut.nodes[part.cut.maker[met.name]] for part in (mine, theirs))
            suspect.inside = enter(NodePair(mine, theirs, node, other, rename), suspect, walk, depth + 1)
            suspects.add(suspect)
    differences = Differences(mine, theirs, rename)
    rows = []
    for suspect, outputs in suspects.ranked()[:_TOLD]:
        lines = differences.of(suspect.region, suspect.tensor)
        rows.append(suspect_row(suspect, outputs, mine.cut, evidence(suspect, lines, walk.stopped)))
    return rows


def _walk(mine: Part, theirs: Part, feeds: tuple[Values, Values], stack: ExitStack) -> Walk:
    opaque = _opaque(mine, feeds[0]) | _opaque(theirs, feeds[1])
    points = {name: Point(name) for name in mine.cut.maker if name in theirs.cut.maker and name not in opaque}
    store, pool = ArrayStore(1 << 60, mine.folder), SessionPool(False)
    stack.callback(store.close)
    stack.callback(pool.close)
    plans = [part.cut.segments(points, None) for part in (mine, theirs)]
    streams = [p.stream(plan, feed, pool) for p, plan, feed in zip((mine, theirs), plans, feeds, strict=True)]
    exploder = Exploder(mine.cut, points)
    reference = Reference(streams[1], points, theirs.weight, store)
    local = LocalRuns(mine, exploder)
    return Walk(mine.cut, plans[0], streams[0], feeds[0], points, reference, local, exploder.regions)


def _opaque(part: Part, feed: Values) -> set[str]:
    """What is no tensor."""
    known = part.cut.estimates_for(feed)
    return {name for name, estimate in known.items() if estimate.opaque}


def _read(met: Met, walk: Walk, mine: Part, errors: BodyErrors) -> Suspect | None:
    place, region = mine.place(met.name), walk.regions.of(met.tensor).nodes
    local = errors.of(met, region)
    accumulated = None if met.accumulated is None else error_of(met.accumulated, met.reference, (), place.depth)
    word = "kernel" if met.failure else diagnose(local, accumulated, None, "")
    if local is not None and not local.rel and word in ("clean", "propagated"):
        return None
    return Suspect(place, met.name, word, local, accumulated, None, region, 0, failure=met.failure)
