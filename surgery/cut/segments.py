"""Cuts a model into consecutive segments by tensor names, without touching its weights.

A segment is a run of nodes in topological order. It reads tensors from earlier segments (the boundary), and outputs the
requested tensors and those that later segments need. Run one after the other, with live tensors passed
between them, the segments run each node once; with optimisation off every tensor is bit-equal to the
unsegmented run. Weights stay external data in the model's own file.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock

import onnx
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.reads import captures, reads
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.cut.sizes import Estimate, estimates
from layerwise._tool.surgery.model.topological_order import topological
from layerwise._tool.surgery.origin.graph import ProtoOrigins

_INPUTS_HOLD_NO_WEIGHTS = 4  # from this IR version on, initializers need not be graph inputs
CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})


class Segment(Struct, frozen=True):
    """Nodes of one segment (positions in the graph's topological order).

    feeds: boundary tensors it reads (including graph inputs). gives: its outputs: tensors requested or needed later.
    """

    nodes: tuple[int, ...]
    feeds: tuple[str, ...]
    gives: tuple[str, ...]


class GraphCut:
    """A model's main graph, ready to be cut. `model` is a structure (weights external) and is not changed."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        graph = model.graph
        node_reads = [reads(node) for node in graph.node]
        order = topological(graph.node, node_reads)
        self.nodes = [graph.node[i] for i in order]
        self.reads = [node_reads[i] for i in order]
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {sparse.values.name: sparse for sparse in graph.sparse_initializer}
        self.maker = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        weights = self.initializers.keys() | self.sparse.keys()
        self.inputs = [value.name for value in graph.input if value.name not in weights]
        self.outputs = list(dict.fromkeys(value.name for value in graph.output))
        self._estimated: tuple[object, dict[str, Estimate]] = (None, {})
        self._estimating = Lock()

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The positions of the nodes that read each tensor, captures of their bodies included."""
        found: dict[str, list[int]] = {}
        for i, names in enumerate(self.reads):
            for name in names:
                found.setdefault(name, []).append(i)
        return found

    @cached_property
    def origins(self) -> ProtoOrigins:
        """Return where each node comes from."""
        return ProtoOrigins(self.nodes)

    def estimates(self, shapes: Mapping[str, Sequence[int]]) -> Mapping[str, Estimate]:
        """Return what inference finds about its tensors when the inputs have `shapes`; the last answer is kept."""
        asked = {name: tuple(shape) for name, shape in shapes.items()}
        with self._estimating:
            if self._estimated[0] != asked:
                self._estimated = (asked, estimates(self.model, asked))
            return self._estimated[1]

    def estimates_for(self, feed: Mapping[str, Array]) -> Mapping[str, Estimate]:
        """Return what inference finds about its tensors when these arrays are its inputs."""
        return self.estimates({name: array.shape for name, array in feed.items()})

    @cached_property
    def depth(self) -> list[int]:
        """Return the length of the longest path to each node, in nodes."""
        depth: list[int] = []
        for names in self.reads:
            depth.append(1 + max((depth[self.maker[name]] for name in names if name in self.maker), default=0))
        return depth

    def needed(self, wanted: Iterable[str]) -> list[int]:
        """Return the positions of the nodes that `wanted` depend on. UsageError for a tensor that no node makes."""
        need = set(wanted)
        unknown = [n for n in need if n not in self.maker and n not in self.initializers and n not in self.inputs]
        if unknown:
            raise UsageError(f"the model makes no tensor {shown(sorted(unknown)[0], 120)!r}")
        chosen = []
        for i in range(len(self.nodes) - 1, -1, -1):
            if not need.isdisjoint(self.nodes[i].output):
                chosen.append(i)
                need.update(self.reads[i])
        return chosen[::-1]

    def segments(
        self,
        wanted: Iterable[str],
        limit: int | None,
        known: Mapping[str, Estimate] | None = None,
        *,
        rising: bool = False,
    ) -> list[Segment]:
        """Return segments that together make every `wanted` tensor, each node once.

        limit: maximum bytes of outputs and weights (each once) per segment by the `known` estimates (a single node may
        exceed it); None is one segment. rising: an eighth of that for the first, twice as much for each that follows,
        so that something is made soon. Sequences, optionals and maps never cross a cut.
        """
        wanted = set(wanted)
        nodes = self.needed(wanted)
        last = {name: i for i in nodes for name in self.reads[i]}
        groups = (
            [nodes]
            if limit is None
            else self._groups(nodes, wanted, last, limit, known or {}, _RISING if rising else 0)
        )
        return [self._segment(group, wanted, last) for group in groups if group]

    def none_above(self, limit: int, known: Mapping[str, Estimate]) -> bool:
        """True if every tensor that nodes make, and every weight, is known to take at most `limit` bytes."""
        if any(body.type in (body.GRAPH, body.GRAPHS) for node in self.nodes for body in node.attribute):
            return False
        sizes = (known.get(name, _UNKNOWN).nbytes for node in self.nodes for name in node.output if name)
        return all(size is not None and size <= limit for size in sizes) and all(
            self._weight_bytes([name]) <= limit for name in self.initializers
        )

    def with_outputs(self, names: Iterable[str]) -> bytes:
        """Return the whole model, serialised, with `names` (tensors that it makes) as its outputs."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.graph.output[:]
        known = {value.name: value for value in [*self.model.graph.value_info, *self.model.graph.output]}
        model.graph.output.extend(known.get(name) or onnx.ValueInfoProto(name=name) for name in names)
        data: bytes = model.SerializeToString()
        return data

    def build(self, segment: Segment, types: Mapping[str, int]) -> bytes:
        """Return the segment as a serialised ModelProto; `types`: ONNX element types of its feeds."""
        part = self.empty()
        graph = part.graph
        graph.node.extend(self.nodes[i] for i in segment.nodes)
        self.add_weights(graph, segment.nodes, types)
        for name in segment.feeds:
            graph.input.add(name=name).type.tensor_type.elem_type = types[name]
        for name in segment.gives:
            graph.output.add(name=name)
        data: bytes = part.SerializeToString()
        return data

    def empty(self) -> onnx.ModelProto:
        """Return a model for a part of this one: with its opsets, its functions and its name."""
        part = onnx.ModelProto(ir_version=max(self.model.ir_version, _INPUTS_HOLD_NO_WEIGHTS))
        part.opset_import.extend(self.model.opset_import)
        part.functions.extend(self.model.functions)
        part.graph.name = self.model.graph.name or "part"
        return part

    def add_weights(self, graph: onnx.GraphProto, nodes: Iterable[int], fed: Container[str] = ()) -> None:
        """Add to `graph` the weights that these nodes read, except those that are fed."""
        for name in dict.fromkeys(name for i in nodes for name in self.reads[i]):
            if name in self.initializers and name not in fed:
                graph.initializer.append(self.initializers[name])
            elif name in self.sparse:
                graph.sparse_initializer.append(self.sparse[name])

    def _segment(self, nodes: list[int], wanted: set[str], last: Mapping[str, int]) -> Segment:
        made = {name for i in nodes for name in self.nodes[i].output if name}
        feeds = dict.fromkeys(
            name
            for i in nodes
            for name in self.reads[i]
            if name not in made and name not in self.initializers and name not in self.sparse
        )
        end = nodes[-1]
        gives = [
            name
            for i in nodes
            for name in self.nodes[i].output
            if name and (name in wanted or last.get(name, -1) > end)
        ]
        return Segment(tuple(nodes), tuple(feeds), tuple(gives))

    def _groups(
        self,
        nodes: list[int],
        wanted: set[str],
        last: Mapping[str, int],
        limit: int,
        known: Mapping[str, Estimate],
        smaller: int,
    ) -> list[list[int]]:
        groups: list[list[int]] = [[]]
        sizes: dict[str, int] = {}
        weights: set[str] = set()
        held, open_opaque = 0, 0
        for i in nodes:
            made, read = self._made_bytes(i, wanted, known, sizes), set(self.reads[i]) & self.initializers.keys()
            most = limit >> max(0, smaller + 1 - len(groups))
            if groups[-1] and held + made + self._weight_bytes(read - weights) > most and open_opaque <= i:
                groups.append([])
                weights, held = set(), 0
            groups[-1].append(i)
            held += made + self._weight_bytes(read - weights)
            weights |= read
            for name in self.nodes[i].output:
                if known.get(name, _UNKNOWN).opaque:
                    open_opaque = max(open_opaque, last.get(name, i) + 1)
        return groups

    def _weight_bytes(self, names: Iterable[str]) -> int:
        return sum(_external_bytes(self.initializers[name]) for name in names)

    def _made_bytes(self, i: int, wanted: set[str], known: Mapping[str, Estimate], sizes: dict[str, int]) -> int:
        """Return the bytes of a node's requested outputs. An unknown size is taken to be that of its largest input."""
        read = (name for name in self.reads[i] if name not in self.initializers)
        guess = max((sizes.get(name) or known.get(name, _UNKNOWN).nbytes or 0 for name in read), default=0)
        made = 0
        for name in self.nodes[i].output:
            nbytes = known.get(name, _UNKNOWN).nbytes
            sizes[name] = guess if nbytes is None else nbytes
            made += sizes[name] if name in wanted else 0
        return made


_UNKNOWN = Estimate()
_RISING = 3  # segments that are smaller than the limit


def _external_bytes(tensor: onnx.TensorProto) -> int:
    for entry in tensor.external_data:
        if entry.key == "length" and entry.value.isdigit():
            return int(entry.value)
    return 0


def bodies(node: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """Return the bodies of a node, each with the name of its attribute."""
    return ((attribute.name, attribute.g) for attribute in node.attribute if attribute.HasField("g"))


def body_graph(outer: GraphCut, body: onnx.GraphProto, types: Mapping[str, int]) -> GraphCut:
    """Return a body as a separate graph: its captures become inputs, or weights if they are weights outside.

    types: ONNX element types of tensors that may be captured. Weights stay in place, as in `outer`.
    """
    model = outer.empty()
    model.graph.CopyFrom(body)
    for name in captures(body):
        if name in outer.initializers:
            model.graph.initializer.append(outer.initializers[name])
        elif name in outer.sparse:
            model.graph.sparse_initializer.append(outer.sparse[name])
        else:
            model.graph.input.add(name=name).type.tensor_type.elem_type = types.get(name, 0)
    return GraphCut(model)
