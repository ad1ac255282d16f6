"""The last sentence of each kind of search: what was found, how sure that is, and what to do next."""

from typing import TypeVar

from msgspec.structs import replace

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import (
    BuildsResult,
    LayersResult,
    NodeSearchResult,
    PrecisionSearchResult,
    RepeatedResult,
    SearchResult,
)

Result = TypeVar("Result", bound=SearchResult)
_BUNDLE = "`debug bundle` makes a report of it that runs."


def concluded(result: Result) -> Result:
    """Return the result with its conclusion: the summary, and what is known beyond it."""
    text = result.summary if result.summary.endswith((".", ".)")) else f"{result.summary}."
    return replace(result, conclusion=" ".join(filter(None, (text, *_more(result)))))


def _more(result: SearchResult) -> tuple[str, ...]:
    if isinstance(result, NodeSearchResult):
        return _nodes(result)
    if isinstance(result, PrecisionSearchResult):
        return _precision(result)
    if isinstance(result, BuildsResult):
        return _builds(result)
    if isinstance(result, RepeatedResult):
        return _repeated(result)
    return _layers(result) if isinstance(result, LayersResult) else ()


def _nodes(result: NodeSearchResult) -> tuple[str, ...]:
    if not result.found:
        return ()
    if not result.verified:
        return ("Search again with --flaky auto." if result.by == "command" else "",)
    if result.by == "person":
        return ("That is by your answers.", _BUNDLE)
    again = "Tried once more by itself, it fails." if len(result.found) == 1 else "Tried once more, each fails."
    return again, _BUNDLE


def _precision(result: PrecisionSearchResult) -> tuple[str, ...]:
    if not result.found:
        failing = "`debug locate` tells why." if result.original == "bad" else ""
        return (failing or ("Loosen the tolerance." if result.original == "good" else ""),)
    if not result.verified:
        return ()
    sure = "That is by your answers." if result.by == "person" else "Tried once more, that passes."
    where = "with FP32 nodes between casts: run the file where it computes in low precision."
    return (f"{sure[:-1]}, {where}",) if result.emulated else (sure, "Run the file where it is to be used.")


def _repeated(result: RepeatedResult) -> tuple[str, ...]:
    if result.bad and result.good:
        return ("It comes and goes: `debug bisect --flaky auto` finds the node at which it begins.",)
    if result.bad:
        return ("It never passed: `debug reduce` finds the smallest part that fails.",)
    return ("It never failed: other inputs or more trials (--until) may show more.",) if result.good else ()


def _builds(result: BuildsResult) -> tuple[str, ...]:
    path = result.files.get("exclude")
    if path:
        return (f"A build with --exclude-tactics {shown(path, 400)} leaves these out.",)
    return ("`debug locate` tells which layer is wrong.",) if result.bad and not result.good else ()


def _layers(result: LayersResult) -> tuple[str, ...]:
    if result.kept is None:
        return ("`debug locate` tells which layer is wrong.",)
    return ("All fewer that were tried fail.",) if result.kept else ()
