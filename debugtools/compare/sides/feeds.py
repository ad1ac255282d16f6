"""Whether a script gives another attempt of a job the inputs that it gave before: nothing else can tell."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.earlier_attempts import Stale, typed
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import FeedRow
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import Side

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Tell = Callable[[int, str], None]


def same_feeds(context: "JobContext", spec: FeedSpec, feeds: Iterator[Feed]) -> Iterator[Feed]:
    """Yield the feeds; those of a script leave rows of table `feeds`. Stale if one is another than it was before."""
    if spec.files or not spec.script:
        yield from feeds
        return
    known = {row.iteration: row.hash for row in typed(context.previous_rows("feeds"), FeedRow)}
    for number, feed in enumerate(feeds):
        found = digest(feed).hex()
        if known.get(number, found) != found:
            raise Stale(f"{shown(spec.script, 200)} gives other inputs than in attempt {context.earlier.attempt}")
        if number not in known:
            context.row("feeds", FeedRow(number, found))
        yield feed


def digest(feed: Feed, start: bytes = b"") -> bytes:
    """A hash of the tensors of a feed by name, type, shape and values."""
    made = blake2b(start, digest_size=20)
    for name, array in feed.items():
        made.update(name.encode() + str(array.dtype).encode() + repr(array.shape).encode())
        made.update(repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
    return made.digest()


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
        for side in sides:
            side.expect(feed)
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
