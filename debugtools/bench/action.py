"""The job action `bench`: times a model, layer by layer if requested."""

from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.bench.spec import BenchSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.bench.rows import BenchResult


def bench(context: "JobContext") -> "BenchResult":
    """Time what `context.params` describes (a BenchSpec). Rows of the tables runs, profile and comparisons."""
    try:
        spec = msgspec.convert(context.params, BenchSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of what to time does not fit: {error}") from None
    from layerwise._tool.debugtools.bench.run import BenchRun

    return BenchRun(context, spec).run()
