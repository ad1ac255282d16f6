"""The job action `debug_precision`."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.search.precision.spec import PrecisionSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.search.rows import PrecisionSearchResult


def debug_precision(context: "JobContext") -> "PrecisionSearchResult":
    """Find the nodes of the model that must stay in FP32, by the PrecisionSpec in `context.params`.

    Emits rows of the tables precision, verdicts, band, best and, where asked for, layers; returns the nodes, the
    model's path and the frontier of error against low nodes. LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, PrecisionSpec, "the search")
    from layerwise._tool.backends.trt.store import forget_candidates
    from layerwise._tool.debugtools.search.precision.run import PrecisionRun

    try:
        return context.resumed(lambda: PrecisionRun(context, spec).run())
    finally:
        forget_candidates()
