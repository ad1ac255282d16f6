"""The feeds of a comparison whose sides may hold different numbers of iterations: only those of all are compared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.side import SavedSide, Side

Feed = Mapping[str, NDArray[Any]]
Tell = Callable[[int, str], None]


def common_feeds(sides: Sequence[Side], feeds: Iterable[Feed] | None, tell: Tell) -> Iterator[Feed]:
    """Give as many feeds as there are iterations of every saved side; without inputs (None) empty ones.

    tell: gets the number of iterations and a sentence, once they are over, where a side or the inputs hold more.
    """
    saved = [(side.name, side.iterations) for side in sides if isinstance(side, SavedSide)]
    most = min((count for _, count in saved), default=None)
    source = iter(feeds) if feeds is not None else iter([{}] * (most or 0))
    done = 0
    for feed in islice(source, most):
        done += 1
        yield feed
    more = feeds is not None and done == most and _more(source)
    if more or any(count != done for _, count in saved):
        held = [f"{shown(name, 80)} {count}" for name, count in saved]
        held += [] if feeds is None else [f"the inputs {done}{' and more' * more}"]
        text = f"different numbers of iterations ({', '.join(held)})"
        tell(done, f"{text}. Only the first {done} iteration(s) were compared")


def _more(source: Iterator[Feed]) -> bool:
    try:
        return next(source, None) is not None
    except LayerwiseError:  # one that nobody needs
        return True
