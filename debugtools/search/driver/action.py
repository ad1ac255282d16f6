"""The job actions `debug_reduce`, `debug_bisect` and `debug_repeat`."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.search.conclusion import concluded
from layerwise._tool.debugtools.search.rows import NodeSearchResult, RepeatedResult
from layerwise._tool.debugtools.search.spec import DebugSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def debug_reduce(context: "JobContext") -> NodeSearchResult:
    """Make the failing case of `context.params` (a DebugSpec) as small as it gets: all independent culprits.

    Emits rows of the tables verdicts, band and best; returns what was found, verified. LayerwiseError for what the user
    can mend.
    """
    return context.resumed(lambda: concluded(_search(context, "reduce")))


def debug_bisect(context: "JobContext") -> NodeSearchResult:
    """Find the first node, in topological order, from which on the model fails. Rows and result as `debug_reduce`."""
    return context.resumed(lambda: concluded(_search(context, "bisect")))


def debug_repeat(context: "JobContext") -> RepeatedResult:
    """Do the same thing again and again and count how often it fails. Rows of the tables verdicts and band."""
    from layerwise._tool.debugtools.search.driver.repeat import Repeat

    return context.resumed(lambda: concluded(Repeat(context, _spec(context)).run()))


def _search(context: "JobContext", what: str) -> NodeSearchResult:
    spec = _spec(context)
    if spec.compare is None:
        raise UsageError("there is no model to search in")
    from layerwise._tool.backends.trt.store import forget_candidates
    from layerwise._tool.debugtools.compare.sides.setup import Setup

    setup = Setup(spec.sides(anew=spec.flaky is not None))
    if len(setup.sides) > 1 and not (spec.check or spec.interactive):
        setup.start()
    for side in setup.model_sides:
        side.model.prepare(whole_graph=True)
    from layerwise._tool.debugtools.search.driver.node_search import (
        NodeSearch,  # while sessions open and models are parsed
    )

    try:
        return NodeSearch(context, spec, setup, what).run()
    finally:
        setup.close()
        forget_candidates()


def _spec(context: "JobContext") -> DebugSpec:
    return read_spec(context.params, DebugSpec, "the search")
