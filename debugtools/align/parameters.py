"""Pairs scalars, shapes and what is computed from them, which tell nothing by their values: by where they are read."""

from collections.abc import Iterator
from itertools import combinations

from layerwise._tool.debugtools.align.candidates import Values
from layerwise._tool.debugtools.align.distance import comparable
from layerwise._tool.debugtools.align.groups import GroupGraph
from layerwise._tool.debugtools.align.operators import plain
from layerwise._tool.debugtools.align.pairing import Pairing

_Pair = tuple[int, int]


def pair_parameters(first: GroupGraph, second: GroupGraph, values: Values, pairing: Pairing) -> set[int]:
    """Add pairs of parameters that stand at the same place of the same operator of a pair; their values may differ.

    If two of an operator's parameters have each other's values, these are pairs: it reads them in another order.
    Returns the first side's.
    """
    found: set[int] = set()
    waiting = sorted(pairing.forth.items())
    while waiting:
        a, b = waiting.pop()
        for x, y in _read_alike(first, second, (a, b), values):
            if x in pairing.forth or y in pairing.back or not (first.trivial[x] and second.trivial[y]):
                continue
            apart, _ = values.apart(x, y)
            known = bool(first.prints_of[x] and second.prints_of[y])
            if known and apart.in_order and all(p.kind != "float" for p in first.prints_of[x]):
                continue
            if known and not any(comparable(p, q) for p in first.prints_of[x] for q in second.prints_of[y]):
                continue
            pairing.add(x, y)
            found.add(x)
            waiting.append((x, y))
    return found


def _read_alike(first: GroupGraph, second: GroupGraph, pair: _Pair, values: Values) -> Iterator[_Pair]:
    """Inputs at the same places of operators of the same name, among what makes the members of two groups."""
    makers = [second.makers[name] for name in second.groups[pair[1]].members if name in second.makers]
    for name in first.groups[pair[0]].members:
        maker = first.makers.get(name)
        if maker is None:
            continue
        for there in makers:
            if plain(there.op) == plain(maker.op) and len(there.inputs) == len(maker.inputs):
                places = zip(maker.inputs, there.inputs, strict=True)
                found = [(first.of[x], second.of[y]) for x, y in places if x in first.of and y in second.of]
                yield from _uncrossed(found, first, second, values)


def _uncrossed(pairs: list[_Pair], first: GroupGraph, second: GroupGraph, values: Values) -> list[_Pair]:
    """The pairs of inputs of two operators, but of parameters that have each other's values those of equal values."""
    known = [i for i, (x, y) in enumerate(pairs)
             if first.trivial[x] and second.trivial[y] and first.prints_of[x] and second.prints_of[y]
             and values.apart(x, y)[0].in_order]  # fmt: skip
    for i, j in combinations(known, 2):
        (x, y), (other, there) = pairs[i], pairs[j]
        if x != other and not values.apart(x, there)[0].in_order and not values.apart(other, y)[0].in_order:
            pairs[i], pairs[j] = (x, there), (other, y)
    return pairs
