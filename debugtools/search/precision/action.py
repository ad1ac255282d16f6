"""The job action `debug_precision`."""

from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.search.precision.spec import PrecisionSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.search.rows import PrecisionSearchResult


def debug_precision(context: "JobContext") -> "PrecisionSearchResult":
    """Find the nodes of the model that must stay in FP32, by the PrecisionSpec in `context.params`.

    Emits rows of the tables precision, verdicts, band, best and, where asked for, layers; returns the nodes, the
    model's path and the frontier of error against low nodes. LayerwiseError for what the user can mend.
    """
    try:
        spec = msgspec.convert(context.params, PrecisionSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of the search does not fit: {error}") from None
    from layerwise._tool.backends.trt.store import forget_candidates
    from layerwise._tool.debugtools.search.precision.run import PrecisionRun

    try:
        return context.resumed(lambda: PrecisionRun(context, spec).run())
    finally:
        forget_candidates()
