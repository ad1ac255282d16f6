"""Which outputs are compared with each other, and the loop over them."""

from collections.abc import Callable, Sequence
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise.comparator.struct import IterationResult
from layerwise.logger import G_LOGGER
from layerwise.util import find_str_in_iterable

FindOutput = Callable[[str, int, IterationResult], Sequence[str] | None]
"""Output name, its place, the other side's result -> names there."""


class BaseCompareFunc:
    """Takes two IterationResults, returns output name -> something that is true if it passed."""

    def __call__(self, iter_result0: IterationResult, iter_result1: IterationResult) -> Any:
        raise NotImplementedError

    def thresholds_for(self, output_name: str) -> Any:
        """The threshold that decides on an output; for functions whose results can be averaged."""
        raise NotImplementedError


def default_find_output_func(
    output_name: str, index: int, iter_result: IterationResult, base_iter_result: IterationResult
) -> list[str] | None:
    """The other side's output of that name, or one whose name is alike or that has its place, unless the first side
    has an output of exactly that name; None if there is none.
    """
    found = find_str_in_iterable(output_name, iter_result.keys(), index)
    if found is None or (found != output_name and found in base_iter_result):
        return None
    if found != output_name:
        G_LOGGER.warning(f"Output names did not match exactly. Assuming {iter_result.runner_name} output: "
                         f"{shown(found, 120)} corresponds to output: {shown(output_name, 120)}")  # fmt: skip
    return [found]


def run_comparison(
    func: Callable[[str, Any, str, Any], Any],
    fail_fast: bool,
    iter_result0: IterationResult,
    iter_result1: IterationResult,
    find_output_func: FindOutput,
    func_name: str | None = None,
) -> dict[str, Any]:
    """Call `func(name, array, other name, other array)` for all outputs that belong together: output -> its result.

    fail_fast: stop at the first that fails. PolygraphyException if none belong together.
    """
    found: dict[str, Any] = {}
    for index, (name, value) in enumerate(iter_result0.items()):
        for other in find_output_func(name, index, iter_result1) or []:
            if other is None or other not in iter_result1:
                tell_skipped(name, other, iter_result0, iter_result1)
                continue
            with G_LOGGER.indent():
                found[name] = _named(func(name, value, other, iter_result1[other]), name, other)
            if fail_fast and not found[name]:
                return found
    need_some(found, iter_result0, iter_result1)
    tell_summary(found, func_name)
    return found


def metric_fields_for_func(func: Any) -> list[str] | None:
    """The numbers that a function's results have; none if they have none, None if it does not tell."""
    if not hasattr(func, "thresholds_for"):
        return None
    try:
        return list(func.thresholds_for("").metric_fields())
    except NotImplementedError:
        return []


def tell_skipped(name: str, other: Any, first: IterationResult, second: IterationResult) -> None:
    """A warning about an output without a counterpart."""
    G_LOGGER.warning(
        f"For output: '{shown(name, 200)}' [{first.runner_name}], skipping corresponding output: "
        f"'{shown(str(other), 200)}' [{second.runner_name}], since the output was not found"
    )


def need_some(found: Any, first: IterationResult, second: IterationResult) -> None:
    """LayerwiseError if there are outputs and none were compared."""
    if not found and (len(first) or len(second)):
        raise LayerwiseError(
            f"All outputs were skipped, no common outputs found: {shown(str(list(first)), 300)} and "
            f"{shown(str(list(second)), 300)}"
        )


def tell_summary(found: dict[str, Any], label: str | None) -> None:
    """The line about all outputs of an iteration."""
    bad = [shown(name, 200) for name, each in found.items() if not each]
    head = f" | {label}" if label else ""
    if bad:
        G_LOGGER.error(f"FAILED{head} | Mismatched outputs: {bad}")
    elif not found:
        G_LOGGER.warning(f"SKIPPED{head} | No output was compared")
    else:
        names = [shown(name, 200) for name in found]
        G_LOGGER.finish(f"PASSED{head} | All outputs matched | Outputs: {names}")


def _named(result: Any, name: str, other: str) -> Any:
    if not isinstance(result, bool):
        result.output0_name, result.output1_name = name, other
    return result
