"""Hints for splitting a model over GPUs, as Polygraphy's `template shard-hints` makes them from the graph alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx_graphsurgeon as gs
from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.formats.json_arrays import CLASS
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.patterns import to_graph
from layerwise._tool.surgery.plugins.shard.attention import attentions

_LENGTHS = ("sequence_length", "seq_len")


class ShardChoices(Struct, kw_only=True):
    """What is not in the graph. places: of the sequence length in inputs, outputs, keys, values; ranks: of inputs,
    outputs, and of keys and values, where the model does not tell. shuffles: transpositions of queries, keys, values.
    """

    parallelism: str = "CP"
    root: int = -1
    gpus: int = 0
    groups: list[int] = []
    fused: bool = False
    suggest_io: bool = True
    places: tuple[int, int, int, int] = (0, 0, 0, 0)
    ranks: tuple[int | None, int | None, int | None] = (None, None, None)
    reduce_op: str = "max"
    pattern: int = 0
    shuffles: tuple[list[int] | None, list[int] | None, list[int] | None] = (None, None, None)
    causal: bool = False
    nb_rank: int = 1


def shard_hints(structure: Structure, choices: ShardChoices, tell: Callable[[str], None]) -> dict[str, Any]:
    """The hints as JSON values, in Polygraphy's form. UsageError where two nodes share a name; LayerwiseError."""
    return graph_hints(to_graph(structure), choices, tell)


def graph_hints(graph: gs.Graph, choices: ShardChoices, tell: Callable[[str], None]) -> dict[str, Any]:
    """The same of a graph."""
    if len({node.name for node in graph.nodes}) != len(graph.nodes):
        raise UsageError("All nodes in graph need to have unique names")
    layers, rank = [], None
    inputs, outputs = _Reached(graph.inputs), _Reached(graph.outputs)
    for layer in attentions(graph, choices.pattern):
        tell(f"Found attention layer with Q tensor {layer.query.name}")
        rank = rank or _rank(layer.key if layer.key.shape else layer.value, choices.ranks[2])
        if choices.suggest_io:
            inputs.walk(layer.mixed, lambda node: node.inputs, lambda tensor: tensor.inputs)
            outputs.walk(layer.mixed, lambda node: node.outputs, lambda tensor: tensor.outputs)
        layers.append(_layer(layer.query.name, choices))
    for tensor in (*inputs.found, *outputs.found):
        tell(f"Found dependent tensor {tensor.name}")
    return {
        "parallelism": choices.parallelism,
        "attention_layers": layers,
        "dist_collectives": {
            "group_size": choices.gpus, "root": choices.root, "nb_rank": choices.nb_rank,
            "reduce_op": choices.reduce_op, "groups": choices.groups, CLASS: "DistCollective",
        },
        "inputs": list(_tensors(inputs.found, choices.places[0], choices.ranks[0])),
        "outputs": list(_tensors(outputs.found, choices.places[1], choices.ranks[1])),
        "k_seq_len_idx": choices.places[2],
        "v_seq_len_idx": choices.places[3],
        "kv_rank": rank or choices.ranks[2],
        CLASS: "ShardHints",
    }  # fmt: skip


def _layer(query: str, choices: ShardChoices) -> dict[str, Any]:
    shuffles = dict(zip(("q_shuffle", "k_shuffle", "v_shuffle"), choices.shuffles, strict=True))
    fused = {"is_causal": choices.causal, **shuffles, "nb_rank": choices.nb_rank, CLASS: "FusedAttention"}
    return {
        "q": query, "gather_kv": not choices.fused, "gather_q": False, "replace": fused if choices.fused else None,
        CLASS: "AttentionLayerHint",
    }  # fmt: skip


def _tensors(found: Iterable[Any], place: int, rank: int | None) -> Iterator[Mapping[str, Any]]:
    for tensor in found:
        named = [at for at, dim in enumerate(tensor.shape or ()) if dim in _LENGTHS]
        yield {"name": tensor.name, "seq_len_idx": named[0] if named else place, "rank": _rank(tensor, rank),
               CLASS: "ShardTensor"}  # fmt: skip


def _rank(tensor: Any, fallback: int | None) -> int | None:
    return len(tensor.shape) if tensor.shape else fallback


class _Reached:
    """Inputs, or outputs, of the model that nodes depend on, or that depend on them; in the order of the graph."""

    def __init__(self, ends: Sequence[Any]) -> None:
        self._ends = {tensor.name: tensor for tensor in ends}
        self._seen: set[str] = set()
        self._reached: set[str] = set()

    def walk(self, start: Any, edges: Callable[[Any], Any], nodes: Callable[[Any], Any]) -> None:
        """Go on from a node along its tensors. edges: of a node; nodes: behind a tensor."""
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node.name in self._seen:
                continue
            self._seen.add(node.name)
            for tensor in edges(node):
                if tensor.name in self._ends:
                    self._reached.add(tensor.name)
                else:
                    waiting += nodes(tensor)

    @property
    def found(self) -> list[Any]:
        return [tensor for name, tensor in self._ends.items() if name in self._reached]
