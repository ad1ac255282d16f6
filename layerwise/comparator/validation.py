"""Whether outputs are finite."""

from collections.abc import Iterator
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise.comparator.struct import RunResults
from layerwise.datatype import DataTypeEntry
from layerwise.logger import G_LOGGER
from layerwise.util import array


def validated(
    results: RunResults, check_inf: bool, check_nan: bool, fail_fast: bool = False, iteration: int | None = None
) -> bool:
    """Whether no output holds NaN, nor, with `check_inf`, what is not finite. fail_fast: stop at the first that does.

    iteration: the number of the one that this is, which gets no summary.
    """
    valid = True
    where = "" if iteration is None else f"Iteration {iteration} | "
    for name, iterations in results:
        for output, value in ((o, v) for each in iterations for o, v in each.items()):
            found = _invalid(value, check_inf, check_nan)
            text = f"FAILED | Errors detected in output: {shown(output, 200)} ({found})"
            text = text if found else f"PASSED | Output: {shown(output, 200)} is valid"
            G_LOGGER.verdict(not found, f"{name:35} | {where}{text}")
            valid = valid and not found
            if found and fail_fast:
                return False
    if iteration is None:
        G_LOGGER.verdict(valid, f"{'PASSED' if valid else 'FAILED'} | Output Validation")
    return valid


def validated_stream(stream: Any, check_inf: bool, check_nan: bool) -> Iterator[RunResults]:
    """The same stream. PolygraphyException where an iteration is not valid."""
    try:
        for index, single in enumerate(stream):
            if not validated(single, check_inf, check_nan, fail_fast=True, iteration=index):
                G_LOGGER.critical(f"Output validation failed: iteration {index} contains invalid values (NaNs/Infs).")
            yield single
    finally:
        if callable(close := getattr(stream, "close", None)):
            close()


def _invalid(value: Any, check_inf: bool, check_nan: bool) -> str:
    kind = array.dtype(value)
    if isinstance(kind, DataTypeEntry) and not kind.is_floating:
        return ""
    if check_nan and array.any(array.isnan(value)):
        return "NaN"
    return "Inf" if check_inf and not array.all(array.isfinite(value)) else ""
