"""Which outputs of two runs belong together, and which have nothing to be compared with.

The elements of a sequence come as `name[0]`, `name[1]`, …, so that what one side lacks may be an element, a value that
an output should have, or an output that only the other side knows.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.results.inference import Stored, StoredOutputs
from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.pairing.left_out import KINDS


class Uneven(msgspec.Struct, frozen=True):
    """An output of both sides that they do not give alike: a sequence of another length, or a value on one side only.

    counts: elements on each side, of what is no sequence one or none.
    """

    name: str
    sequence: bool
    counts: tuple[int, int]

    @property
    def kind(self) -> str:
        """What stands in a row where others have a data type."""
        return KINDS[not self.sequence]

    @property
    def text(self) -> str:
        """What differs."""
        first, second = self.counts
        if not self.sequence:
            return f"only the {'first' if first else 'second'} side has a value"
        if first == second:
            return "a sequence on one side only"
        return f"sequence lengths differ: {first} and {second}"


class Counterparts(msgspec.Struct):
    """common: names on both sides, in the first one's order. alone: per side, names that the other does not know.

    absent: outputs of both sides without a value on either.
    """

    common: list[str] = []
    uneven: list[Uneven] = []
    alone: tuple[list[str], list[str]] = msgspec.field(default_factory=lambda: ([], []))
    absent: list[str] = []

    def any(self) -> bool:
        """Whether the sides know at least one output in common."""
        return bool(self.common or self.uneven or self.absent)


Declared = Collection[str]


def counterparts(first: Iterable[str], second: Iterable[str], declared: tuple[Declared, Declared]) -> Counterparts:
    """Pair the names that two runs gave. declared: all outputs that each side may give, as far as that is known, a
    sequence by its own name.
    """
    known = frozenset(declared[0]) | frozenset(declared[1])
    groups = [_grouped(names, known) for names in (first, second)]
    may = [found.keys() | set(names) for found, names in zip(groups, declared, strict=True)]
    result = Counterparts()
    for name in dict.fromkeys([*groups[0], *groups[1], *sorted(known)]):
        one, other = groups[0].get(name, []), groups[1].get(name, [])
        there = set(other)
        result.common += [element for element in one if element in there]
        if one and other:
            if set(one) != there:
                result.uneven.append(_uneven(name, one, other))
        elif name not in may[0] or name not in may[1]:
            result.alone[0 if name in may[0] else 1].append(name)
        elif one or other:
            result.uneven.append(_uneven(name, one, other))
        else:
            result.absent.append(name)
    return result


def outputs_of(names: Iterable[str]) -> frozenset[str]:
    """The outputs that names of arrays come from: of the elements of a sequence, the sequence."""
    return frozenset(_grouped(names, ()))


def _uneven(name: str, one: Sequence[str], other: Sequence[str]) -> Uneven:
    counts = (_count(one), _count(other))
    return Uneven(name, any(element != name for element in (*one, *other)), counts)


def _count(elements: Sequence[str]) -> int:
    """How many elements; the two arrays of a map are one."""
    return len({element.removesuffix("[keys]").removesuffix("[values]") for element in elements})


def _grouped(names: Iterable[str], known: Collection[str]) -> dict[str, list[str]]:
    """Names by the output that they are of."""
    names = list(names)
    there = frozenset(names)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_owner(name, there, known), []).append(name)
    return groups


def _owner(name: str, there: Collection[str], known: Collection[str]) -> str:
    """The sequence (or map) that a name is an element of, the name itself if it is an output by that name."""
    base = element_of(name)
    if not base or name in known:
        return name
    starts = (f"{base}[0]", f"{base}[0][keys]", f"{base}[keys]")
    return base if base in known or any(start in there for start in starts) else name


class RenamedOutputs(Mapping[str, Array]):
    """Outputs of a file under other names, still read only when asked for. laid: brings each into its layout."""

    def __init__(
        self,
        outputs: Mapping[str, Array],
        own: Mapping[str, str],
        laid: Callable[[str, Array], Array] | None = None,
    ) -> None:
        self._outputs, self._own, self._laid = outputs, own, laid

    def __getitem__(self, name: str) -> Array:
        array = self._outputs[self._own[name]]
        return array if self._laid is None else self._laid(name, array)

    def described(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Name, dtype and shape of each, without reading any."""
        stored = self._outputs.stored if isinstance(self._outputs, StoredOutputs) else self._outputs
        for name, own in self._own.items():
            value = stored[own]
            yield name, value.dtype if isinstance(value, Stored) else dtype_name(value), value.shape

    def __contains__(self, name: object) -> bool:
        return name in self._own

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)
