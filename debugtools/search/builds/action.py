"""The job action `debug_build`."""

from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.search.builds.spec import BuildsSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.search.rows import BuildsResult


def debug_build(context: "JobContext") -> "BuildsResult":
    """Build the engine that `context.params` (a BuildsSpec) describes again and again, and have each build judged.

    Emits rows of the tables verdicts and band.
    """
    from layerwise._tool.debugtools.search.builds.run import Builds

    try:
        spec = msgspec.convert(context.params, BuildsSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of the builds does not fit: {error}") from None
    return context.resumed(lambda: Builds(context, spec).run())
