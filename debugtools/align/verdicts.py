"""How sure a pair is, and why: judged when all pairs are known."""

from collections import defaultdict
from collections.abc import Iterator

from layerwise._tool.debugtools.align.alignment import Confidence, Layout, Reason
from layerwise._tool.debugtools.align.distance import tolerance
from layerwise._tool.debugtools.align.evidence import Evidence
from layerwise._tool.debugtools.align.matcher import Matcher
from layerwise._tool.debugtools.align.members import Member, how_far
from layerwise._tool.debugtools.align.names import METADATA, NAME
from layerwise._tool.debugtools.align.pairing import reached

_ENOUGH = 0.6
_NEARER = 1.25
_EXACT = 1e-5
_MUCH_NEARER = 5.0
_FLOOR = 0.02  # of the distance within which values agree: nearer says little


class Verdicts:
    """Reasons and confidence of pairs of a finished matching."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._agreeing: tuple[dict[int, set[int]], dict[int, set[int]]] = (defaultdict(set), defaultdict(set))
        for a, b in matcher.values.agreeing:
            apart, within = matcher.values.apart(a, b)
            if apart.any_order <= within:
                self._agreeing[0][a].add(b)
                self._agreeing[1][b].add(a)
        self._known: dict[tuple[int, int], Evidence] = {}

    def copies(self) -> Iterator[tuple[int, int]]:
        """Groups of the first side that are left, with one that holds the same values: computed twice on this side.

        Not what an operation makes of the counterpart's own tensor if it should do more than hand that on: a sum whose
        other part is lost, a power of one. Nor where the counterpart's own tensor comes much nearer to it, or is made
        from the group and comes nearer: a product before its bias.
        """
        m, counterparts = self.matcher, dict(self.matcher.forth)
        for group in m.first.groups:
            a = group.number
            if a in m.forth or not m.first.prints_of[a]:
                continue
            found = []
            read = {counterparts[i] for i in reached(m.first, a, counterparts, ahead=False)[0]}
            for b in self._agreeing[0].get(a, ()):
                apart, within = m.values.apart(a, b)
                if apart.in_order > within or self._falls_short(a, b):
                    continue
                if not (b in read and self._does_more(a, b)):
                    found.append((-self._weighed(a, b).score, b))
            if found:
                counterparts[a] = min(found)[1]
                yield a, counterparts[a]

    def _falls_short(self, a: int, b: int) -> bool:
        """Whether the group that has the counterpart already comes much nearer to it; or nearer, and is made from the
        other one.
        """
        m = self.matcher
        own = m.back.get(b)
        if own is None:
            return False
        far, near = (m.values.apart(group, b)[0].in_order for group in (a, own))
        if a in m.first.before[own]:
            return far > _NEARER * max(near, _EXACT)
        return far > _MUCH_NEARER * max(near, _FLOOR * m.values.apart(a, b)[1])

    def _does_more(self, a: int, b: int) -> bool:
        """Whether a group that comes to what it is made from is not simply left out on the second side."""
        m = self.matcher
        readers = [m.forth[i] for i in m.first.behind[a] if i in m.forth]
        skipped = any(b in m.second.groups[reader].inputs for reader in readers)
        return len(m.first.before[a]) > 1 or bool(readers and not skipped)

    def of(self, a: int, b: int, member: Member) -> tuple[Confidence, tuple[Reason, ...]]:
        """Return how sure a pair of tensors of two paired groups is, and the reasons."""
        weighed = self._weighed(a, b)
        agrees = self._agrees(member) and weighed.agrees
        structure = self._structure(weighed) or a in self.matcher.placed
        named = bool(weighed.named & NAME) and (member.tensor == member.other or weighed.agrees)
        reasons: list[Reason] = []
        if named:
            reasons.append("name")
        if weighed.named & METADATA:
            reasons.append("metadata")
        if agrees:
            reasons.append("value")
        if structure or not reasons:
            reasons.append("structure")
        return self._confidence(a, b, agrees, structure, len(reasons), weighed, member.layout), tuple(reasons)

    def _weighed(self, a: int, b: int) -> Evidence:
        known = self._known.get((a, b))
        if known is None:
            known = self._known[a, b] = self.matcher.judge.weigh(a, b)
        return known

    def _agrees(self, member: Member) -> bool:
        if member.apart is None:
            return False
        one, other = self.matcher.first.prints[member.tensor], self.matcher.second.prints[member.other]
        return how_far(member, one.shape == other.shape) <= tolerance(one, other, self.matcher.values.quantised)

    def _structure(self, weighed: Evidence) -> bool:
        """Whether what lies before or behind is paired alike, and nothing speaks against it."""
        sides = [share for share in (weighed.sources, weighed.sinks) if share is not None]
        return bool(sides) and max(sides) >= _ENOUGH and min(sides) > 0 and weighed.operator > -1

    def _confidence(
        self, a: int, b: int, agrees: bool, structure: bool, count: int, weighed: Evidence, layout: Layout | None
    ) -> Confidence:
        m = self.matcher
        copy = m.forth.get(a) != b
        tied = a in m.ties or copy
        moved = layout is not None and bool(layout.permutation) and not m.first.groups[a].weight
        if agrees and count >= 2:
            return "likely" if tied or moved else "certain"
        if agrees:
            alone = len(self._agreeing[0][a]) == 1 and len(self._agreeing[1][b]) == 1
            telling = not m.first.prints_of[a][0].constant and weighed.in_order
            contradicted = weighed.sources == 0 or weighed.sinks == 0
            return "certain" if alone and telling and not contradicted and not tied else "possible"
        both = weighed.sources is not None and weighed.sinks is not None and structure
        sure = (
            count >= 2 or (both and min(weighed.sources or 0, weighed.sinks or 0) >= _ENOUGH) or weighed.weights >= 0.75
        )
        return "likely" if sure and structure and not tied else "possible"
