"""What one side of a comparison calls its tensors, and in which layout it has them."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.alignment import AlignedPair, Layout

Shape = tuple[int, ...]


class Naming:
    """rename: name in the comparison's model -> name on this side; other names are the same on both.

    aligned: an alignment says which tensors belong together; then equal names alone mean nothing. missing: why tensors
    of the comparison's model have no counterpart here, as far as there is more to say than that there is none. idle:
    its constants and whole numbers, such as the shapes that an exporter computes its own way: nobody misses those.
    """

    idle: frozenset[str] = frozenset()

    def __init__(self, rename: Mapping[str, str]) -> None:
        self.rename = dict(rename)
        self.aligned = False
        self.missing: dict[str, str] = {}
        self._back: dict[str, list[str]] = {}
        for name, own in self.rename.items():
            self._back.setdefault(own, []).append(name)
        self._layouts: dict[str, Layout] = {}
        self._by_value: set[str] = set()
        self._shapes: dict[str, Shape] = {}

    def own(self, name: str) -> str:
        """This side's name of a tensor."""
        return self.rename.get(name, name)

    def common(self, own: str) -> str:
        """The comparison's name of one of this side's tensors; the first, where it is the counterpart of several."""
        names = self._back.get(own)
        return names[0] if names else own

    def back(self, own: str) -> bool:
        """Whether a tensor of this side was given any name of the comparison."""
        return own in self._back

    def commons(self, own: str) -> list[str]:
        """All the comparison's names of one of this side's tensors."""
        return list(self._back.get(own) or [own])

    def named(self, own: str, array: Array) -> Iterator[tuple[str, Array]]:
        """One of this side's tensors by each of the comparison's names of it, in that one's layout."""
        for name in self._back.get(own) or [own]:
            yield name, self.laid(name, array)

    def add(self, name: str, own: str) -> None:
        """Have a tensor go by another name here."""
        before = self._back.get(self.rename.get(name, ""), [])
        if name in before:
            before.remove(name)
        self.rename[name] = own
        self._back.setdefault(own, []).append(name)

    def add_like(self, name: str, own: str, like: str) -> None:
        """The same, in the layout that another of the comparison's names for it has; "": as it is."""
        self.add(name, own)
        layout = self._layouts.get(like)
        self._layouts.pop(name, None)
        if layout is not None:
            self._layouts[name] = layout

    def align(self, pairs: Iterable[AlignedPair], mine: Collection[str], theirs: Collection[str]) -> None:
        """Take up which tensors belong together. What has no counterpart is nothing's counterpart by its name either.

        Several may have one counterpart. mine: all names in the comparison's model; theirs: all names here.
        """
        self._layouts.clear()
        self._by_value.clear()
        for pair in pairs:
            self.add(pair.tensor, pair.other)
            if pair.confidence == "possible" and pair.reasons == ("value",):
                self._by_value.add(pair.tensor)
            if pair.layout is not None:
                self._layouts[pair.tensor] = pair.layout
        self.aligned = True
        taken, there = {*mine, *theirs}, frozenset(theirs)
        for name in mine:
            if name not in self.rename and name in there:
                self.rename[name] = _free(f"{name} (no counterpart)", taken)
        for own in theirs:
            if not self._back.get(own) and own in mine:
                self._back[own] = [_free(f"{own} (of the other side)", taken)]

    @property
    def laid_out(self) -> bool:
        """Whether any tensor has another layout here."""
        return bool(self._layouts)

    def hides(self, name: str) -> bool:
        """Whether a tensor (the comparison's name) has another shape or order here, or alignment found it nowhere."""
        return name in self._layouts or (self.aligned and not self._back.get(self.own(name)))

    def turned(self, name: str) -> bool:
        """Whether a tensor (the comparison's name) has its axes in another order here."""
        layout = self._layouts.get(name)
        return layout is not None and bool(layout.permutation)

    def by_value_alone(self, name: str) -> bool:
        """Whether nothing but an equal value, which others have too, pairs a tensor (the comparison's name)."""
        return name in self._by_value

    def laid(self, name: str, array: Array) -> Array:
        """One of this side's tensors (name: the comparison's) in the comparison's layout; as it is where it does not
        fit, which its shape tells.
        """
        layout = self._layouts.get(name)
        if layout is None:
            return array
        self._shapes[name] = array.shape
        try:
            return np.asarray(layout(array), order="C")
        except ValueError:
            return array

    def unlaid(self, name: str, array: Array) -> Array:
        """A tensor in the comparison's layout as this side has it; as it is where that does not fit."""
        layout = self._layouts.get(name)
        if layout is None or name not in self._shapes:
            return array
        shape = self._shapes[name]
        before = layout.before or shape
        try:
            if layout.permutation:
                array = array.reshape([before[axis] for axis in layout.permutation])
                array = np.transpose(array, np.argsort(layout.permutation))
            return np.asarray(array.reshape(shape), order="C")
        except ValueError:
            return array


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    taken.add(name)
    return name
