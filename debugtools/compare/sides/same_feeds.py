"""Whether a script gives another attempt of a job the inputs that it gave before: nothing else can tell."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.jobs.journal.earlier_attempts import Stale, typed
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import FeedRow

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Feed = Mapping[str, NDArray[Any]]


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
