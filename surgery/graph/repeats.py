"""Finds repeated blocks of nodes: the equal layers of a network, in the order of the nodes.

Nodes are similar if operator, attributes and the type and shape of the first output are equal; which tensors they read
does not matter. A repeat is a periodic run of such nodes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.columns import Columns

LEAST_SAVED = 6
_GRAM, _PERIODS, _LOOK = 4, 24, 8
_FIRST_NUMBER = re.compile(r"^.*?\d+")
_MIX = np.uint64(0x9E3779B97F4A7C15)
Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Repeat:
    """`count` equal blocks of `period` nodes each, consecutive in the order from position `start`."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Position after the last block."""
        return self.start + self.period * self.count


def node_tokens(columns: Columns) -> Tokens:
    """Return a number for each node, equal for similar nodes."""
    n_nodes = columns["node_op"].size
    parts = [columns["node_op"], columns["node_domain"], columns["node_scope"] > 0, _attribute_sums(columns)]
    outputs, at = columns["outputs"], columns["outputs_at"]
    first = np.full(n_nodes, -1, np.int64)
    some = at[1:] > at[:-1]
    first[some] = outputs[at[:-1][some]]
    for name in ("tensor_dtype", "tensor_shape"):
        parts.append(np.append(columns[name], -1)[first])
    mixed = np.zeros(n_nodes, np.uint64)
    for part in parts:
        mixed = (mixed ^ part.astype(np.int64).view(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return np.asarray(np.unique(mixed, return_inverse=True)[1], np.int64)


def _attribute_sums(columns: Columns) -> NDArray[np.int64]:
    names, texts = columns["attributes"].astype(np.uint64), columns["attributes_text"].astype(np.uint64)
    mixed = (names * np.uint64(0x10001) + texts + np.uint64(1)) * _MIX
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed)])
    at = columns["attributes_at"]
    return np.asarray((total[at[1:]] - total[at[:-1]]).view(np.int64))


def find_repeats(tokens: Tokens, name_at: Callable[[int], str], live: NDArray[np.int64]) -> list[Repeat]:
    """Return the repeats among nodes in order, ascending and without overlap, preferring those that cover most.

    name_at: the node's name. live[i]: number of tensors that cross position i; blocks are split where
    numbers in the names change, and where few tensors cross. O(n log n).
    """
    runs = sorted(_runs(tokens), key=lambda run: (-_covered(*run), run[2]))
    taken = np.zeros(tokens.size + 1, np.bool_)
    found = []
    for from_, to, period in runs:
        start, end = _free_part(taken, from_, to)
        if (end - start) // period < 2 or period * ((end - start) // period - 1) < LEAST_SAVED:
            continue
        repeat = _aligned(start, end, period, name_at, live)
        taken[repeat.start : repeat.end] = True
        found.append(repeat)
    return sorted(found, key=lambda repeat: repeat.start)


def crossing(columns: Columns) -> NDArray[np.int64]:
    """Return for each node's position, and the end: how many tensors made before it are read at it or later."""
    n_nodes = columns["node_op"].size
    producer, at = columns["tensor_producer"].astype(np.int64), columns["consumers_at"]
    read = (producer >= 0) & (at[1:] > at[:-1])
    last = columns["consumers"][at[1:][read] - 1].astype(np.int64)
    return crossing_of(producer[read], last, n_nodes)


def crossing_of(first: NDArray[np.int64], last: NDArray[np.int64], n_places: int) -> NDArray[np.int64]:
    """Like `crossing`, from the positions of makers and last readers."""
    change = np.zeros(n_places + 2, np.int64)
    forward = last > first
    np.add.at(change, first[forward] + 1, 1)
    np.add.at(change, last[forward] + 1, -1)
    return np.asarray(np.cumsum(change)[: n_places + 1])


def _covered(start: int, end: int, period: int) -> int:
    return (end - start) // period * period


def _runs(tokens: Tokens) -> Iterable[tuple[int, int, int]]:
    """Return (start, end, period) of all stretches in which every token recurs after `period`."""
    for period in _periods(tokens):
        same = np.concatenate([[False], tokens[period:] == tokens[:-period], [False]])
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        starts, ends = edges[::2], edges[1::2]
        for i in np.flatnonzero(ends - starts >= period).tolist():
            yield int(starts[i]), int(ends[i]) + period, period


def _periods(tokens: Tokens) -> list[int]:
    """Return the most frequent distances between a few nodes and the next similar ones."""
    if tokens.size < 2 * _GRAM:
        return list(range(2, tokens.size // 2 + 1))
    grams = np.zeros(tokens.size - _GRAM + 1, np.uint64)
    for k in range(_GRAM):
        grams = (grams ^ tokens[k : k + grams.size].view(np.uint64)) * _MIX
    order = np.argsort(grams, kind="stable")
    same = grams[order][1:] == grams[order][:-1]
    distances, counts = np.unique(np.diff(order)[same], return_counts=True)
    commonest: list[int] = distances[np.argsort(-counts, kind="stable")][:_PERIODS].tolist()
    return [period for period in commonest if 2 <= period <= tokens.size // 2]


def _free_part(taken: NDArray[np.bool_], start: int, end: int) -> tuple[int, int]:
    """Return the longest part of start … end that is still unassigned."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], taken[start:end], [True]]).astype(np.int8)))
    if not edges.size:
        return start, start
    widest = int(np.argmax(edges[1::2] - edges[::2]))
    return start + int(edges[2 * widest]), start + int(edges[2 * widest + 1])


def _aligned(start: int, end: int, period: int, name_at: Callable[[int], str], live: NDArray[np.int64]) -> Repeat:
    """Return the blocks of a stretch, split at the best position that loses no block."""
    count = (end - start) // period
    spare = end - start - count * period
    cuts = min(count, _LOOK)

    def cost(shift: int) -> tuple[int, int, int]:
        places = [start + shift + k * period for k in range(cuts)]
        changes = sum(_label(name_at(place - 1)) != _label(name_at(place)) for place in places if place)
        return -changes, int(live[places].sum()), shift

    return Repeat(start + min(range(spare + 1), key=cost), period, count)


def _label(name: str) -> str:
    """Return the beginning of a name, up to its first number."""
    found = _FIRST_NUMBER.match(name)
    return found[0] if found else ""
