"""Names in columns: too long ones are shortened in the middle, so that no two different ones on a screen look equal."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from layerwise._tool.backends.text import Called, shown_name
from layerwise._tool.tui.presenters.text import Glyphs, fit, last_cells

OUTPUT = "_output_0"
"""What exporters put behind a node's name to name its tensor."""
TITLE = "title"
"""The column of what is said in words: it is cut at its end unless that is what tells it apart."""
T = TypeVar("T")
_SEPARATORS = "/._:"
_MOST = 4
"""Parts out of the middle of a name that are shown, at most."""
_LONGEST = 2000
_HEAD = 0.5
"""The share of a column, at most, that what comes before the end of a name takes."""


class Wanted(Struct, frozen=True):
    """A name and the cells that it has. column: names of one column are told apart from each other first."""

    name: str
    cells: int
    column: str = ""


class Names:
    """The names that are drawn, each in the cells of its column, padded.

    A list tells before it draws what it is about to draw (`look`): how a name is shortened follows from those around
    it. Names that come later are told apart from those.
    """

    def __init__(self, glyphs: Glyphs) -> None:
        self._ellipsis = glyphs.ellipsis
        self._texts: dict[Wanted, str] = {}
        self._taken: dict[str, dict[str, str]] = {}
        self._collected: dict[Wanted, None] | None = None
        self._seen: tuple[Wanted, ...] = ()

    def text(self, name: str, cells: int, column: str = "") -> str:
        """`name` in exactly `cells` cells. column: see `Wanted`; in "tensor", exporters' `_output_0` goes first."""
        wanted = Wanted(name, max(0, cells), column)
        if self._collected is not None:
            self._collected[wanted] = None
            return " " * wanted.cells
        if wanted not in self._texts:
            self._settle([wanted])
        return self._texts[wanted]

    def look(self, draw: Callable[[], object]) -> None:
        """Take note of all names that `draw` asks for, and of no others."""
        self._collected = {}
        try:
            draw()
        finally:
            seen, self._collected = tuple(self._collected), None
        if seen != self._seen:
            self._seen, self._texts, self._taken = seen, {}, {}
            self._settle(seen)

    def told(self, draw: Callable[[], T]) -> T:
        """What `draw` makes, the names that it asks for shortened together."""
        self.look(draw)
        return draw()

    def inline(self, cells: int) -> Called:
        """How names are shown within a text: as `text` shows them, in `cells` cells at most."""
        return lambda name: self.text(name, cells).rstrip()

    def _settle(self, wanted: Iterable[Wanted]) -> None:
        columns: dict[tuple[str, int], list[str]] = {}
        for one in wanted:
            columns.setdefault((one.column, one.cells), []).append(one.name)
        for (column, cells), names in columns.items():
            taken = self._taken.setdefault(column, {})
            texts = shorten(_labels(names, column), cells, self._ellipsis, taken, cut_end=column == TITLE)
            self._texts |= {Wanted(name, cells, column): set_cell_size(text, cells) for name, text in texts.items()}


def _labels(names: Sequence[str], column: str) -> dict[str, str]:
    """What is shown of each name where there is room."""
    if column != "tensor":
        return {name: name for name in names}
    short = {name: name.removesuffix(OUTPUT) or name for name in names}
    return {name: name if label != name and label in short else label for name, label in short.items()}


def shorten(
    labels: dict[str, str], cells: int, ellipsis: str = "…", taken: dict[str, str] | None = None, *,
    cut_end: bool = False,
) -> dict[str, str]:  # fmt: skip
    """What to show of each name in at most `cells` cells, 4 at least: different texts for different names.

    labels: name -> all that there is to show of it. taken: texts that are shown already, and the name each stands for;
    the new ones are added. cut_end: the start is what stays, where that is enough.
    """
    taken = {} if taken is None else taken
    found: dict[str, str] = {}
    labels = {name: _safe(label) for name, label in labels.items()}
    long = {name: label for name, label in labels.items() if cell_len(label) > cells}
    whole = {name: label for name, label in labels.items() if name not in long}
    _take_unique(whole, found, taken)
    if cut_end or len(long) == 1:  # of a name alone both ends tell most
        keep = "start" if cut_end else "both"
        texts = {name: fit(label, cells, ellipsis, keep=keep) for name, label in long.items()}
        long = {name: long[name] for name in _take_unique(texts, found, taken)}
    _Shortening(cells, ellipsis, found, taken).run(long)
    for name in labels:
        if name not in found:
            found[name] = _numbered(labels[name], cells, ellipsis, taken)
            taken[found[name].strip()] = name
    return found


def beside(names: Sequence[str], rooms: Sequence[int], ellipsis: str) -> list[str]:
    """Names that stand beside each other, those that are too long for their room cut so that they stay different."""
    long = {name: room for name, room in zip(names, rooms, strict=True) if cell_len(_safe(name)) > room}
    texts = shorten({name: name for name in long}, min(long.values(), default=0), ellipsis, cut_end=True)
    return [texts.get(name, _safe(name)) for name in names]


def _safe(label: str) -> str:
    return shown_name(label if len(label) <= _LONGEST else label[: _LONGEST // 2] + label[-_LONGEST // 2 :])


def _take_unique(texts: dict[str, str], found: dict[str, str], taken: dict[str, str]) -> dict[str, str]:
    """Keep what stands for one name alone; the rest comes back."""
    owners: dict[str, set[str]] = {}
    for name, text in texts.items():
        owners.setdefault(text.strip(), set()).add(name)
    rest: dict[str, str] = {}
    for name, text in texts.items():
        key = text.strip()
        if len(owners[key]) == 1 and taken.get(key, name) == name:
            found[name], taken[key] = text, name
        else:
            rest[name] = text
    return rest


class _Shortening:
    """Names that are too long: groups that look equal get further parts of their middle, until none does."""

    def __init__(self, cells: int, ellipsis: str, found: dict[str, str], taken: dict[str, str]) -> None:
        self._cells, self._ellipsis, self._found, self._taken = cells, ellipsis, found, taken

    def run(self, labels: dict[str, str]) -> None:
        """Find texts for names; those that none can be found for are left out."""
        if labels:
            start = _shared_start(sorted(set(labels.values())))
            self._refine(labels, {name: self._points(label, start) for name, label in labels.items()})

    @staticmethod
    def _points(label: str, start: str) -> tuple[int, ...]:
        return (len(_common(sorted([label, start]))),)

    def _refine(self, labels: dict[str, str], points: dict[str, tuple[int, ...]]) -> None:
        """points: where the parts to show of each name begin, apart from its end."""
        best = self._best(labels, points)
        rest = _take_unique(best, self._found, self._taken)
        groups: dict[str, list[str]] = {}
        for name, text in rest.items():
            groups.setdefault(text, []).append(name)
        for group in groups.values():
            more = self._further({name: labels[name] for name in group}, points)
            if more is not None:
                self._refine({name: labels[name] for name in group}, more)

    def _further(self, labels: dict[str, str], points: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]] | None:
        """The same parts, and the one in which names that look equal begin to differ; None where that is known."""
        at = len(_common(sorted(labels.values())))
        known = points[next(iter(labels))]
        if len(labels) < 2 or at in known:
            return None
        kept = tuple(sorted({*known, at} - {0}))
        return dict.fromkeys(labels, kept) if kept and kept != known and len(kept) <= _MOST else None

    def _best(self, labels: dict[str, str], points: dict[str, tuple[int, ...]]) -> dict[str, str]:
        """Of several ways to show these parts, the one that tells most names apart."""
        ways = [{name: self._text(label, points[name], way) for name, label in labels.items()} for way in _WAYS]
        return max(ways, key=lambda texts: len(set(texts.values())))

    def _text(self, label: str, points: Sequence[int], way: "Way") -> str:
        parts: list[tuple[int, int]] = []
        for point in points:
            start, end = way(label, point)
            if parts and start <= parts[-1][1]:
                parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
            else:
                parts.append((start, end))
        return self._join(label, parts)

    def _join(self, label: str, parts: Sequence[tuple[int, int]]) -> str:
        """These parts of a name, and as much of its end as there is room for."""
        dots = cell_len(self._ellipsis)
        text, room, behind = "", self._cells, 0
        for begin, end in parts:
            start = behind if begin <= behind + dots else begin
            gap = self._ellipsis if start > behind else ""
            piece = label[start:end]
            left = room - cell_len(gap) - dots - 1
            piece = piece[: max(0, min(left, int(self._cells * _HEAD)))]
            if not piece or cell_len(piece) > left:
                break
            text, room, behind = f"{text}{gap}{piece}", room - cell_len(gap + piece), start + len(piece)
        rest = label[behind:]
        if cell_len(rest) <= room and not text.removeprefix(self._ellipsis).count(self._ellipsis):
            return self._ellipsis + last_cells(label, self._cells - dots)  # one piece: what goes before it fits, too
        if cell_len(rest) <= room:
            return text + rest
        return f"{text}{self._ellipsis}{last_cells(rest, room - dots)}"


Way = Callable[[str, int], tuple[int, int]]
"""Where the part of a name that begins to differ at some place starts and ends."""


def _token(label: str, at: int) -> tuple[int, int]:
    """The part between separators: `layer.3` is two of them."""
    start = max(label.rfind(mark, 0, at) for mark in "/:") + 1
    ends = [end for mark in "/:" if (end := label.find(mark, at + 1)) >= 0]
    return start, min(ends, default=len(label))


def _word(label: str, at: int) -> tuple[int, int]:
    """The word, or the whole number."""
    start = max(label.rfind(mark, 0, at) for mark in _SEPARATORS) + 1
    ends = [end for mark in _SEPARATORS if (end := label.find(mark, at + 1)) >= 0]
    return start, min(ends, default=len(label))


def _exact(label: str, at: int) -> tuple[int, int]:
    """The number that a digit is of, or the one character."""
    end = at + 1
    start = at
    if label[at : at + 1].isdigit() or label[max(0, at - 1) : at].isdigit():
        while start and label[start - 1].isdigit():
            start -= 1
        while end < len(label) and label[end].isdigit():
            end += 1
    return start, min(end, len(label))


_WAYS: tuple[Way, ...] = (_token, _word, _exact)


def _common(ordered: Sequence[str]) -> str:
    """What all of these begin with; they are in order, so that the first and the last tell."""
    low, high = ordered[0], ordered[-1]
    same = next((place for place, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), None)
    return low[: min(len(low), len(high)) if same is None else same]


def _shared_start(ordered: Sequence[str]) -> str:
    """The longest start that most of these names have; nothing of a single name."""
    most = len(ordered) // 2 + 1
    starts = (_common([ordered[place], ordered[place + most - 1]]) for place in range(len(ordered) - most + 1))
    return max(starts, key=len, default="") if len(ordered) > 1 else ""


def _numbered(label: str, cells: int, ellipsis: str, taken: dict[str, str]) -> str:
    """The last resort: the name's ends, and a number."""
    for number in count(2):
        sign = f"~{number}"
        text = fit(label, max(0, cells - len(sign)), ellipsis).rstrip() + sign
        if text.strip() not in taken:
            return text
    raise AssertionError("numbers do not end")
