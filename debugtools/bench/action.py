"""The job action `bench`: times a model, layer by layer if requested."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.bench.spec import BenchSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.bench.rows import BenchResult


def bench(context: "JobContext") -> "BenchResult":
    """Time what `context.params` describes (a BenchSpec). Rows of the tables runs, profile and comparisons."""
    spec = read_spec(context.params, BenchSpec, "what to time")
    from layerwise._tool.debugtools.bench.run import BenchRun

    return BenchRun(context, spec).run()
