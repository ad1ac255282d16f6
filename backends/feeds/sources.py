"""Makes feed dicts, one dict of arrays per iteration, from files, a script or synthetic data."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.planned import Planned
from layerwise._tool.backends.feeds.synthetic import Synthetic
from layerwise._tool.backends.specs import MOST_SEED, FeedSpec
from layerwise._tool.backends.tensors import TensorInfo

UNKNOWN_INPUTS = (
    "without example inputs a module does not tell what it takes: have its function return them beside the module, or "
    "name inputs (--load-inputs, --data-loader-script)"
)
Warn = Callable[[str], None]
Feed = dict[str, Array]


class Feeds(Struct, frozen=True):
    """Feed dicts in order; every pass yields the same ones (a script's generator allows only one pass).

    count: how many, None if only the source knows.
    """

    count: int | None
    make: Callable[[], Iterator[Feed]]

    def __iter__(self) -> Iterator[Feed]:
        return self.make()


def make_feeds(spec: FeedSpec, inputs: Sequence[TensorInfo] | None, warn: Warn, *, similar: bool = False) -> Feeds:
    """Return the feed dicts that `spec` asks for, checked against the model's `inputs`; None: not known, so that feeds
    come from files or a script, as they are.

    similar: an input may get data of a similar name, or else of its place.

    `warn` gets what was assumed, cast or dropped, each message once. Raises UsageError or BadFile here or during
    iteration: a name, shape or type that does not match, an unreadable file; LayerwiseError for a script that fails.
    """
    if spec.iterations is not None and spec.iterations < 0:
        raise UsageError(f"--iterations is {spec.iterations}: give 0 or more")
    if not 0 <= spec.seed <= MOST_SEED:
        raise UsageError(f"--seed is {spec.seed}: give 0 to {MOST_SEED}")
    warn_once = _once(warn)
    if spec.files:
        from layerwise._tool.backends.feeds.files import file_feeds  # what reads files: most runs make their inputs

        return Feeds(None, file_feeds(spec, inputs, warn_once, similar=similar))
    if spec.script:
        from layerwise._tool.backends.feeds.scripted import script_feeds  # most runs have no script

        return Feeds(*script_feeds(spec, inputs, warn_once, similar=similar))
    if inputs is None:
        raise UsageError(UNKNOWN_INPUTS)
    if spec.made == "auto" and not spec.plan and inputs:
        warn_once("no graph was read for these inputs (--feeds auto): they are made as Polygraphy does")
    synthetic = Planned(spec, inputs, warn_once) if spec.plan else Synthetic(spec, inputs, warn_once)
    return Feeds(synthetic.count, lambda: map(synthetic.feed, range(synthetic.count)))


def _once(warn: Warn) -> Warn:
    said: set[str] = set()

    def say(message: str) -> None:
        if message not in said:
            said.add(message)
            warn(message)

    return say
