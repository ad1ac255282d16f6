"""Context parallelism: each rank has a part of the sequence; attention gathers its keys and values."""

from collections.abc import Iterator
from typing import Any

import onnx_graphsurgeon as gs

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.shard.attention import Attention, attentions
from layerwise._tool.surgery.plugins.shard.graph import ShardGraph, Tell, gathering, scattering
from layerwise._tool.surgery.plugins.shard.hints import AttentionLayer, Fused, Hints


def along_sequence(graph: ShardGraph, hints: Hints, pattern: int, tell: Tell, warn: Tell) -> Structure:
    """The model of every rank. pattern: how attention looks, see `attentions`. UsageError for hints that do not fit it;
    `warn` is told of layers that no attention has.
    """
    queries = _scatter_inputs(graph, hints)
    whole = any(layer.gather_q for layer in hints.layers)
    gathered: set[str] = set()
    for layer, match in list(_matches(graph, hints, queries, pattern, tell, warn)):
        tell(f"Processing attention layer: q={layer.q}, gather_q={layer.gather_q}, gather_kv={layer.gather_kv}")
        if layer.replace is None:
            whole |= _gather(graph, hints, layer, match, gathered)
        else:
            _fuse(graph, match, layer.replace)
    if not whole:
        for end in hints.outputs:
            tensor = graph.tensor(end.name, "output")
            graph.collective(tensor, gathering(hints.dist_collectives), end.seq_len_idx, end.rank)
    return graph.model(hints.dist_collectives)


def _scatter_inputs(graph: ShardGraph, hints: Hints) -> dict[str, str]:
    """Name of each layer's queries → of the tensor that is read instead."""
    names = {layer.q: graph.tensor(layer.q, "queries").name for layer in hints.layers}
    for end in hints.outputs:
        graph.tensor(end.name, "output")
    for end in hints.inputs:
        tensor = graph.tensor(end.name, "input")
        part = graph.collective(tensor, scattering(hints.dist_collectives), end.seq_len_idx, end.rank)
        names[end.name] = part.name
    return names


def _matches(
    graph: ShardGraph, hints: Hints, queries: dict[str, str], pattern: int, tell: Tell, warn: Tell
) -> Iterator[tuple[AttentionLayer, Attention]]:
    found = attentions(graph.graph, pattern)
    tell(f"Found {len(found)} attention pattern matches in the graph.")
    by_query: dict[str, list[Attention]] = {}
    for match in found:
        by_query.setdefault(match.query.name, []).append(match)
    for layer in hints.layers:
        own = by_query.get(queries[layer.q], [])
        if not own:
            warn(f"no attention layer of pattern {pattern} has the queries {shown(layer.q, 120)!r}: nothing is done")
        yield from ((layer, match) for match in own)


def _gather(graph: ShardGraph, hints: Hints, layer: AttentionLayer, match: Attention, gathered: set[str]) -> bool:
    """Gather what the layer says, unless it was `gathered` before; whether its queries are whole then, being its keys
    or values too."""
    (query, key), value = match.scores.inputs, match.mixed.inputs[1]
    same = query is key or query is value
    asked: dict[str, tuple[Any, int]] = {}
    if layer.gather_q:
        asked[query.name] = (query, 0)
    if layer.gather_kv:
        asked.setdefault(key.name, (key, hints.k_seq_len_idx))
        asked.setdefault(value.name, (value, hints.v_seq_len_idx))
    for name in [name for name in asked if name not in gathered]:
        tensor, axis = asked[name]
        gathered.add(graph.collective(tensor, gathering(hints.dist_collectives), axis, hints.kv_rank).name)
    return same and layer.gather_kv


def _fuse(graph: ShardGraph, match: Attention, fused: Fused) -> None:
    """Put an Attention node in the place of the layer, and transpositions before it."""
    read = [*match.scores.inputs, match.mixed.inputs[1]]
    (output,) = match.mixed.outputs
    graph.without([match.scores, match.softmax, match.mixed])
    shuffles = (fused.q_shuffle, fused.k_shuffle, fused.v_shuffle)
    read = [graph.copied(t, order) if order else t for t, order in zip(read, shuffles, strict=True)]
    attributes = {"is_causal": int(fused.is_causal), "scale": 1.0, "TRT_decomposable": 0, "nb_rank": fused.nb_rank}
    graph.graph.nodes.append(gs.Node("Attention", graph.name(), attributes, read, [output]))
