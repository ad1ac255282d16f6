"""Whether a comparison's sides have to be aligned at all: most run one model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.sides.setup import Setup

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def align_sides(context: "JobContext", setup: Setup, feed: Mapping[str, Array]) -> None:
    """Have the sides know which of their tensors belong together, where they run several models and names alone do not
    decide. To be called with every feed before anything is run on it, where tensors within the models are compared.
    """
    if setup.aligner is None:
        models = [side.model for side in setup.model_sides if side.model.has_graph]
        if setup.spec.align == "names" or all(model is setup.model for model in models):
            return
        from layerwise._tool.debugtools.compare.aligning.aligner import Aligner  # not for those that need none

        setup.aligner = Aligner(context, setup)
    setup.aligner.begin(feed)
