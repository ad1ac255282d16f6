"""The job action `locate`: from a LocateSpec to the rows of the layer table with local errors, and the suspects."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.locate.rows import LocateResult
from layerwise._tool.debugtools.locate.spec import LocateSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def locate(context: "JobContext") -> LocateResult:
    """Find the nodes whose own error explains the difference of the two sides of `context.params` (a LocateSpec).

    Emits rows of the tables layers and suspects; returns the suspects, worst first. LayerwiseError for what the user
    can mend.
    """
    spec = read_spec(context.params, LocateSpec, "what to locate")
    return context.resumed(lambda: _locate(context, spec), ["layers", "feeds", "alignment"])


def _locate(context: "JobContext", spec: LocateSpec) -> LocateResult:
    from layerwise._tool.backends.trt.store import forget_candidates
    from layerwise._tool.debugtools.compare.sides.setup import Setup

    setup = Setup(spec.compare, suspect_names=True)
    for side in setup.model_sides:
        side.model.prepare(whole_graph=True)
    from layerwise._tool.debugtools.locate.run import LocateRun  # while the models are parsed

    try:
        with LocateRun(context, spec, setup) as run:
            return run.run()
    finally:
        forget_candidates()
