"""The inputs that a model is tested with."""

from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.surgery.cut.pieces import Pieces

Say = Callable[[str], None]


def first_feed(spec: FeedSpec, pieces: Pieces, warn: Say, give_up: Say) -> Mapping[str, Any] | None:
    """Return one feed dict for a graph; None, and a reason to `give_up`, if none can be generated.

    `warn` gets what was assumed. UsageError if the user's inputs do not match.
    """
    wanted = set(pieces.inputs)
    inputs = tensor_infos(value for value in pieces.graph.input if value.name in wanted)
    try:
        return next(iter(make_feeds(spec, inputs, warn)), None)
    except UsageError as error:
        if spec.files or spec.script or spec.shapes:
            raise
        give_up(f"not run, only loaded: {error}")
        return None
