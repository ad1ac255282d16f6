"""The job action `debug_build`."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.search.builds.spec import BuildsSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.search.rows import BuildsResult


def debug_build(context: "JobContext") -> "BuildsResult":
    """Build the engine that `context.params` (a BuildsSpec) describes again and again, and have each build judged.

    Emits rows of the tables verdicts and band.
    """
    from layerwise._tool.debugtools.search.builds.run import Builds

    spec = read_spec(context.params, BuildsSpec, "the builds")
    return context.resumed(lambda: Builds(context, spec).run())
