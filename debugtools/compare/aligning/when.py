"""Whether a comparison's sides have to be aligned at all: most run one model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.setup import Setup

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def strange_files(setup: Setup) -> bool:
    """Whether a file of more tensors than the model has outputs holds none of these by name: they are looked for."""
    if setup.model is None or not setup.model.has_graph or setup.spec.strict_names:
        return False
    names = [side.names(0) for side in setup.sides if isinstance(side, SavedSide)]
    if not names:  # asking for the outputs costs importing onnx
        return False
    outputs = setup.model.cut.outputs
    return any(len(held) > len(outputs) and set(outputs).isdisjoint(held) for held in names)


def align_sides(context: "JobContext", setup: Setup, feed: Mapping[str, Array]) -> None:
    """Have the sides know which of their tensors belong together, where they run several models and names alone do not
    decide. To be called with every feed before anything is run on it, where tensors within the models are compared.
    """
    if setup.aligner is None:
        models = [side.model for side in setup.model_sides if side.model.has_graph]
        files = any(side.spec.kind == "saved" for side in setup.sides)
        if setup.spec.align == "names" or (all(model is setup.model for model in models) and not files):
            return
        from layerwise._tool.debugtools.compare.aligning.aligner import Aligner  # not for those that need none

        setup.aligner = Aligner(context, setup)
    setup.aligner.begin(feed)
