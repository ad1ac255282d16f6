"""The job action `bench`: times a model, layer by layer if requested."""

from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.bench.spec import BenchSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def bench(context: "JobContext") -> dict[str, Any]:
    """Time what `context.params` describes (a BenchSpec).

    Rows of the table runs (one per runner and batch size: runner, batch, streams, runs, seconds, qps, items_per_second,
    warm_ups, latency and phases: milliseconds as in `statistics`), of profile (as in `profile_rows`, with runner and
    batch) and of comparisons (name, reference, words, and `Comparison`). Result: passed, and all runs and comparisons
    again, with the environment.
    """
    try:
        spec = msgspec.convert(context.params, BenchSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of what to time does not fit: {error}") from None
    from layerwise._tool.debugtools.bench.run import BenchRun

    return BenchRun(context, spec).run()
