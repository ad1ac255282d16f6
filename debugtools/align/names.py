"""Names and metadata that two sides have in common, and how far they can be trusted."""

from collections.abc import Iterator

from layerwise._tool.debugtools.align.groups import Group, GroupGraph

NAME, METADATA = 1, 2
_TRUSTED = 0.7
_WORTH = {0: 0.0, NAME: 2.0, METADATA: 1.5, NAME | METADATA: 2.5}


class Names:
    """near: pairs of groups that names or metadata propose. trust: the share of them whose values do not contradict."""

    def __init__(self, first: GroupGraph, second: GroupGraph) -> None:
        self.first, self.second = first, second
        self._named: dict[tuple[int, int], int] = {}
        for kind, pairs in ((NAME, _by_name(first, second)), (METADATA, _by_source(first, second))):
            for pair in pairs:
                self._named[pair] = self._named.get(pair, 0) | kind
        self.near = list(self._named)
        self.trust = {NAME: 1.0, METADATA: 1.0}

    def weigh(self, a: int, b: int, kinds: int = NAME | METADATA) -> tuple[int, float]:
        """Which of these kinds of names a pair of groups has in common, and what that is worth."""
        kind = self._named.get((a, b), 0) & kinds
        kind = sum(bit for bit in (NAME, METADATA) if kind & bit and self.trust[bit] >= _TRUSTED)
        return kind, _WORTH[kind]

    @property
    def trusted(self) -> bool:
        """Whether the same name means the same tensor."""
        return self.trust[NAME] >= _TRUSTED

    def learn(self, verdicts: dict[tuple[int, int], bool]) -> None:
        """Set the trust. verdicts: of pairs that names propose, whether values confirm or refute them."""
        for bit in (NAME, METADATA):
            votes = [verdicts[pair] for pair, kind in self._named.items() if kind & bit and pair in verdicts]
            if votes:
                self.trust[bit] = sum(votes) / len(votes)


def _by_name(first: GroupGraph, second: GroupGraph) -> Iterator[tuple[int, int]]:
    for name, a in first.of.items():
        if name in second.of:
            yield a, second.of[name]


def _by_source(first: GroupGraph, second: GroupGraph) -> Iterator[tuple[int, int]]:
    mine, theirs = _labels(first), _labels(second)
    for label, a in mine.items():
        if label in theirs:
            yield a, theirs[label]


def _labels(side: GroupGraph) -> dict[str, int]:
    """What the framework called the operations: the last group that is made of each."""
    found: dict[str, int] = {}
    has_sources = any(group.node is not None and group.node.source for group in side.groups)
    for group in side.groups:
        label = _label(group, has_sources)
        if label:
            found[label] = group.number
    return found


def _label(group: Group, has_sources: bool) -> str:
    if group.node is None:
        return ""
    return group.node.source if has_sources else group.node.name or group.root
