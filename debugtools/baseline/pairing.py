"""Which layer of a baseline is which one of now: by name where it is the same thing, else by what it is and its place.

A name alone proves little: exporters number tensors, and one more node shifts all that follow. So a name counts at once
where operator and weights are the same, or operator, shape and the reference's values; then layers of other names are
paired by these; only what is left after that is paired by its name.
"""

from collections.abc import Callable, Hashable, Sequence

from layerwise._tool.debugtools.baseline.rows import KeptLayer

_ALIKE = 5e-3
Signature = Callable[[KeptLayer], Hashable]
Sure = Callable[[KeptLayer, KeptLayer], bool]


class Pairing:
    """then -> now by their positions. lost, new: those of either without counterpart."""

    def __init__(self, then: Sequence[KeptLayer], now: Sequence[KeptLayer]) -> None:
        self.then, self.now = then, now
        self.found: dict[int, int] = {}
        self._left = list(range(len(then))), list(range(len(now)))
        self._take(lambda layer: layer.layer, _same)
        self._take(lambda layer: (layer.operator, layer.weights, layer.shape) if layer.weights else None, _alike)
        self._take(lambda layer: (layer.op, layer.shape), _alike)
        self._take(lambda layer: (layer.operator, layer.weights, layer.shape) if layer.weights else None, _any)
        self._take(lambda layer: layer.layer, _any)

    @property
    def lost(self) -> list[int]:
        return self._left[0]

    @property
    def new(self) -> list[int]:
        return self._left[1]

    def _take(self, signature: Signature, sure: Sure) -> None:
        """Pair what is left and has the same signature, in order."""
        waiting: dict[Hashable, list[int]] = {}
        for j in self._left[1]:
            key = signature(self.now[j])
            if key is not None:
                waiting.setdefault((self.now[j].pair, key), []).append(j)
        for i in self._left[0]:
            key = signature(self.then[i])
            candidates = waiting.get((self.then[i].pair, key), []) if key is not None else []
            chosen = next((j for j in candidates if sure(self.then[i], self.now[j])), None)
            if chosen is not None:
                candidates.remove(chosen)
                self.found[i] = chosen
        taken = set(self.found.values())
        self._left = [i for i in self._left[0] if i not in self.found], [j for j in self._left[1] if j not in taken]


def _same(old: KeptLayer, new: KeptLayer) -> bool:
    digests = (old.operator, old.weights, old.shape)
    if old.operator and old.weights and digests == (new.operator, new.weights, new.shape):
        return True
    return (old.op, old.shape) == (new.op, new.shape) and _alike(old, new)


def _alike(old: KeptLayer, new: KeptLayer) -> bool:
    """Whether the reference's values are about the same."""
    if old.rms is None or new.rms is None:
        return old.rms is new.rms
    return abs(old.rms - new.rms) <= _ALIKE * max(old.rms, new.rms)


def _any(old: KeptLayer, new: KeptLayer) -> bool:
    return True
