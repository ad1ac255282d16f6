"""Tensor parallelism: each rank has a part of the weights of attention plugins and of gated MLPs, and its heads."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.shard.graph import COLLECTIVE, ShardGraph, Tell, summing
from layerwise._tool.surgery.plugins.shard.hints import Hints

_DEPTH = 20  # nodes away


class _Split(NamedTuple):
    """A weight, and the axis that it is split along."""

    weight: Any
    axis: int


def by_weights(graph: ShardGraph, hints: Hints, warn: Tell) -> Iterator[Structure]:
    """The model of each rank in turn. UsageError for a model that cannot be split so."""
    ranks = hints.dist_collectives.nb_rank
    attentions = [node for node in graph.graph.nodes if node.op == "AttentionPlugin"]
    quantized = any(node.op == "DequantizeLinear" for node in graph.graph.nodes)
    projections = [_attention(node) for node in attentions]
    projections += [_mlp(node) for node in graph.graph.nodes if node.op == "Sigmoid"]
    if not projections:
        warn("the model has no AttentionPlugin and no gated MLP (with a Sigmoid): every rank gets all of it")
    splits = [split for into, out in projections for split in _splits(into, out, quantized)]
    for split in splits:
        _check(split, ranks)
    for _, out in projections:
        graph.after(out.outputs[0], COLLECTIVE, summing(hints.dist_collectives))
    _divide_heads(attentions, ranks)
    model = graph.model(hints.dist_collectives)
    for split in splits:
        if split.weight.name not in model.initializers:
            raise UsageError(f"{shown(split.weight.name, 120)!r} is sparse: it cannot be split")
    for rank in range(ranks):
        parts = {split.weight.name: _part(model, split, rank, ranks) for split in splits}
        yield model.with_(initializers={**model.initializers, **parts})


def _attention(node: Any) -> tuple[list[Any], Any]:
    """The MatMuls of queries, keys and values of an AttentionPlugin, and the one behind it."""
    name = shown(node.name, 120)
    if not node.inputs or len(node.outputs) < 2 or not {"num_q_heads", "num_kv_heads"} <= node.attrs.keys():
        raise UsageError(f"the AttentionPlugin {name!r} lacks inputs, outputs, num_q_heads or num_kv_heads")
    joined = _find(node.inputs[0], "Concat", _up, 2) or node
    into = [_find(tensor, "MatMul", _up) for tensor in joined.inputs[:3]]
    out = _find(node.outputs[0], "MatMul", _down)
    if len(into) < 3 or any(node is None for node in into) or out is None:
        raise UsageError(f"the AttentionPlugin {name!r} lacks a MatMul of its queries, keys, values or output")
    return into, out


def _mlp(sigmoid: Any) -> tuple[list[Any], Any]:
    """The MatMuls of the gate and beside it, and the one behind both."""
    gate = _find(sigmoid.inputs[0], "MatMul", _up)
    gated = _find(sigmoid.outputs[0], "Mul", _down)
    product = _find(gated.outputs[0], "Mul", _down) if gated else None
    beside = _find(product.inputs[1], "MatMul", _up) if product else None
    out = _find(product.outputs[0], "MatMul", _down) if product else None
    if gate is None or beside is None or out is None:
        raise UsageError(f"the Sigmoid {shown(sigmoid.name, 120)!r} is not one of a gated MLP (Mul, Mul, MatMul)")
    return [beside, gate], out


def _up(tensor: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    return ((node, node.inputs) for node in tensor.inputs)


def _down(tensor: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    return ((node, node.outputs) for node in tensor.outputs)


Walk = Callable[[Any], Iterator[tuple[Any, Iterable[Any]]]]


def _find(start: Any, op: str, walk: Walk, depth: int = _DEPTH) -> Any:
    """The first node of a type, depth first, at most `depth` nodes away; None."""
    waiting, seen = [(start, depth)], dict[str, int]()
    while waiting:
        tensor, left = waiting.pop()
        if isinstance(tensor, tuple):
            return tensor[0]
        if not left or seen.get(tensor.name, 0) >= left:
            continue
        seen[tensor.name] = left
        later: list[Any] = []
        for node, beyond in walk(tensor):
            if node.op == op:
                later.append(((node,), 0))
                break
            later += [(next_tensor, left - 1) for next_tensor in beyond]
        waiting += reversed(later)
    return None


def _splits(into: list[Any], out: Any, quantized: bool) -> Iterator[_Split]:
    """Weights that a MatMul reads as they are lie the other way round than quantised ones."""
    matmuls = [*into, out]
    plain = all(isinstance(node.inputs[1], gs.Constant) for node in into)
    for node in matmuls:
        axis = int(node is out) if not plain else int(node is not out)
        weights = [node.inputs[1]] if plain else _quantized(node, quantized)
        for weight in weights:
            yield _Split(weight, axis)


def _quantized(matmul: Any, quantized: bool) -> list[Any]:
    """The weight of a MatMul in FP4, and its FP8 scales."""
    values = _find(matmul.inputs[1], "DequantizeLinear", _up) if quantized else None
    scales = _find(values.inputs[1], "DequantizeLinear", _up) if values else None
    if values is None or scales is None:
        raise UsageError(f"the MatMul {shown(matmul.name, 120)!r} has no weight, plain or quantised twice")
    return [values.inputs[0], scales.inputs[0]]


def _check(split: _Split, ranks: int) -> None:
    weight, axis = split
    name = shown(weight.name, 120)
    if not isinstance(weight, gs.Constant) or len(weight.shape or ()) < 2:
        raise UsageError(f"{name!r} is not a weight of two axes: it cannot be split")
    if weight.shape[axis] % ranks or not weight.shape[axis]:
        raise UsageError(f"axis {axis} of the weight {name!r} {list(weight.shape)} cannot be split in {ranks}")


def _divide_heads(attentions: list[Any], ranks: int) -> None:
    caches = {}
    for node in attentions:
        for key in ("num_q_heads", "num_kv_heads"):
            heads = node.attrs[key]
            if not isinstance(heads, int) or heads % ranks:
                name = shown(node.name, 120)
                raise UsageError(f"{key} of {name!r} is {shown(str(heads), 60)}: {ranks} ranks cannot divide it")
            node.attrs[key] = heads // ranks
        past = 1 if len(node.inputs) == 6 else 3
        caches.update({tensor.name: tensor for tensor in (*node.inputs[past : past + 1], node.outputs[1])})
    for tensor in caches.values():
        if tensor.shape and len(tensor.shape) > 2 and isinstance(tensor.shape[2], int):
            tensor.shape = [*tensor.shape[:2], tensor.shape[2] // ranks, *tensor.shape[3:]]


def _part(model: Structure, split: _Split, rank: int, ranks: int) -> onnx.TensorProto:
    tensor = model.initializers[split.weight.name]
    values = np.moveaxis(tensor_array(tensor, model.folder), split.axis, 0)
    size = len(values) // ranks
    part = np.moveaxis(values[rank * size : (rank + 1) * size], 0, split.axis)
    return onnx.numpy_helper.from_array(np.ascontiguousarray(part), tensor.name)
