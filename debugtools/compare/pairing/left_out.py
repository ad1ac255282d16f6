"""What a comparison did not compare, and why: no verdict comes of nothing, and what is missing is listed."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow, NotCompared, Pair, Reason

_ASKED_FOR = frozenset({"excluded", "not marked"})
_SEEN = frozenset({"random"})  # a row of the table tells it
_NAMED = 5
KINDS = ("sequence", "value")  # in place of a data type, in the row of an output that the sides do not give alike
NO_VALUE = "no value on either side: an empty sequence, or an optional without a value"
EMPTY = "no elements on either side"


class LeftOut:
    """Collects what was not compared, each tensor of a pair once for each reason."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str, Pair | None], NotCompared] = {}

    def clear(self) -> None:
        """Forget all of it."""
        self._items.clear()

    def add(self, item: NotCompared) -> None:
        """Take one in."""
        key = item.tensor, item.reason, item.pair
        known = self._items.get(key)
        self._items[key] = item if known is None else replace(known, times=known.times + 1)

    def row(self, row: LayerRow) -> None:
        """Take in a row of the layer table, if it compares nothing."""
        found = why_not(row)
        if found is not None:
            self.add(NotCompared(row.tensor, *found, pair=row.pair, iteration=row.iteration))

    def __iter__(self) -> Iterator[NotCompared]:
        return iter(self._items.values())

    def warnings(self) -> Iterator[str]:
        """A line for each reason that the user did not ask for and no row tells."""
        groups: dict[str, list[NotCompared]] = {}
        for item in self:
            if unasked(item):
                groups.setdefault(item.text, []).append(item)
        for text, items in groups.items():
            names = _names(items)
            yield f"not compared: {names}: {text}" if names else f"not compared: {text}"

    def nothing(self, runners: Sequence[str], pair: Pair) -> str:
        """The sentence for a pair of which nothing was compared, with the reasons."""
        names = " and ".join(shown(runners[index], 80) for index in pair)
        reasons = [_told(item) for item in self if item.pair in (None, pair)]
        more = f"; and {len(reasons) - 2 * _NAMED} more" if len(reasons) > 2 * _NAMED else ""
        why = "; ".join(reasons[: 2 * _NAMED]) or "there was no iteration, or no output"
        return f"nothing was compared of {names} ({why}{more})"


def unasked(item: NotCompared) -> bool:
    """Whether one of a result's `not_compared` is worth a warning: no layer, not as asked for, and no row tells it."""
    return item.reason not in _ASKED_FOR | _SEEN and not item.layer


def compared(row: LayerRow) -> bool:
    """Whether a row says something about values: it has a verdict, and elements or a failure."""
    return why_not(row) is None


def why_not(row: LayerRow) -> tuple[Reason, str] | None:
    """Why a row compares nothing, None if it compares something."""
    if row.passed is False:
        return None
    if row.finding == "skip":
        return "random", row.note
    if row.passed is None:
        return "no verdict", row.note or "no metric gave a verdict"
    return None if row.size else ("empty", EMPTY)


def _names(items: Sequence[NotCompared]) -> str:
    names = list(dict.fromkeys(shown(item.tensor, 120) for item in items if item.tensor))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _told(item: NotCompared) -> str:
    text = shown(item.text, 300)
    return f"{shown(item.tensor, 120)}: {text}" if item.tensor else text
