"""What a suspect and its reference are fed with."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Feed
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.debugtools.compare.sides.feeds import common_feeds, same_feeds
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.torch import example_feeds, feeding_side, known_inputs, renamed_feeds

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def feeds_of(context: "JobContext", setup: Setup, suspect: ModelSide, reference: Side) -> Iterator[Feed]:
    """The inputs of each iteration, by the suspect's names."""
    own = feeding_side(suspect, reference)
    made = example_feeds(setup.spec.feeds, setup.sides, own, not setup.spec.strict_names, context)
    if made is None:
        made = iter(make_feeds(setup.plan_feeds(context, own), known_inputs(own), context.warn))
    feeds = same_feeds(context, setup.feeds, renamed_feeds(made, own, suspect))
    return common_feeds(setup.sides, feeds, lambda _, text: context.warn(text))
