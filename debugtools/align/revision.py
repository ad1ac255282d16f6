"""What is taken back and what is added when all pairs of groups are found."""

from collections.abc import Iterator

from layerwise._tool.debugtools.align.evidence import PairScorer
from layerwise._tool.debugtools.align.pairing import reached


def withdraw(judge: PairScorer) -> None:
    """Take back pairs whose values differ while what is computed from them agrees: the two are not one tensor.

    Unless they are the same operation of the same inputs, or nearest to each other in value. A weight that differs is
    kept where the same operation reads it, with another result.
    """
    first, second = judge.first, judge.second
    for a in sorted(judge.forth, reverse=True):
        b = judge.forth[a]
        if not differ(judge, a, b):
            continue
        if first.groups[a].weight or second.groups[b].weight:
            readers = [(x, y) for x, y in _reading(judge, a) if _reads(judge, y, b) and _alike(judge, x, y)]
            kept = not all(judge.values.agree(x, y, closely=True) for x, y in readers)
        else:
            behind, _ = reached(first, a, judge.forth, ahead=True)
            wrong = not all(judge.values.agree(x, judge.forth[x], closely=True) for x in behind)
            exact = first.prints_of[a][0].kind != "float"
            kept = (
                judge.values.nearest(a, b)
                or ((wrong or not behind) and (not exact or _alike(judge, a, b)))
                or judge.same_operation(a, b)
            )
        if not kept:
            judge.pairing.remove(a)


def differ(judge: PairScorer, a: int, b: int) -> bool:
    """Whether the values of two groups are known and do not agree."""
    return not judge.values.agree(a, b)


def stand_ins(judge: PairScorer) -> Iterator[tuple[int, str]]:
    """Groups of the first side without counterpart, and what is read in their place: one of those they are made from.

    So it is where the second side leaves out an operation: what is computed from both differs, and of what the group is
    made from, the second side reads one alone.
    """
    for group in judge.first.groups:
        floats = any(known.kind == "float" for known in judge.first.prints_of[group.number])
        if group.number in judge.forth or group.node is None or judge.first.trivial[group.number] or not floats:
            continue
        made_from = {judge.forth[x] for x in reached(judge.first, group.number, judge.forth, ahead=False)[0]}
        places = {_instead(judge, x, y, made_from) for x, y in _reading(judge, group.number)}
        if len(places) == 1 and (found := places.pop()) is not None and judge.possible(group.number, found[0]):
            yield group.number, found[1]


def _instead(judge: PairScorer, x: int, y: int, made_from: set[int]) -> tuple[int, str] | None:
    """The only one of some groups that the counterpart of an operation still reads, if its result differs."""
    mine = {judge.forth[k] for k in reached(judge.first, x, judge.forth, ahead=False)[0]}
    theirs = set(reached(judge.second, y, judge.back, ahead=False)[0])
    left = theirs & made_from
    if not theirs < mine or not mine - theirs <= made_from or len(left) != 1 or not differ(judge, x, y):
        return None
    group = judge.second.groups[left.pop()]
    node = judge.second.groups[y].node
    read = [name for name in group.members if node is not None and name in node.inputs]
    return group.number, (read or group.members)[0]


def _reading(judge: PairScorer, a: int) -> Iterator[tuple[int, int]]:
    """The paired groups computed from one, and their counterparts."""
    for x in judge.first.groups[a].readers:
        if x in judge.forth:
            yield x, judge.forth[x]


def _reads(judge: PairScorer, y: int, b: int) -> bool:
    return b in judge.second.groups[y].inputs


def _alike(judge: PairScorer, x: int, y: int) -> bool:
    return judge.first.groups[x].operator == judge.second.groups[y].operator
