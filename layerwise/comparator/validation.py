"""Whether outputs are finite."""

from collections.abc import Iterator
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise.comparator.struct import RunResults
from layerwise.comparator.util import log_output_stats
from layerwise.datatype import DataTypeEntry
from layerwise.logger import G_LOGGER
from layerwise.util import array

_DETECTED = {
    "NaN": "NaN Detected | One or more NaNs were encountered in this output",
    "Inf": "Inf Detected | One or more non-finite values were encountered in this output",
}


def validated(
    results: RunResults, check_inf: bool, check_nan: bool, fail_fast: bool = False, iteration: int | None = None
) -> bool:
    """Whether no output holds NaN, nor, with `check_inf`, what is not finite. fail_fast: stop at the first that does.

    iteration: the number of the one that this is, which gets no summary.
    """
    valid = True
    head = "" if iteration is None else f"Iteration {iteration} | "
    if iteration is None:
        G_LOGGER.start(f"Output Validation | Runners: {list(results.keys())}")
    with G_LOGGER.indent(0 if iteration is not None else 1):
        for name, iterations in results:
            for output, value in ((o, v) for each in iterations for o, v in each.items()):
                asked = f"(check_inf={check_inf}, check_nan={check_nan})"
                G_LOGGER.start(f"{name:35} | {head}Validating output: {shown(output, 200)} {asked}")
                with G_LOGGER.indent():
                    found = _told(output, value, check_inf, check_nan)
                valid = valid and not found
                if found and fail_fast:
                    return False
        if iteration is None:
            G_LOGGER.verdict(valid, f"{'PASSED' if valid else 'FAILED'} | Output Validation")
    return valid


def _told(name: str, value: Any, check_inf: bool, check_nan: bool) -> bool:
    """Whether the output is not valid, which is logged with its statistics."""
    if G_LOGGER.shows(G_LOGGER.INFO, "comparator"):
        log_output_stats(value)
    found = _invalid(value, check_inf, check_nan)
    for kind in found:
        G_LOGGER.error(_DETECTED[kind])
    if found:
        G_LOGGER.error(f"FAILED | Errors detected in output: {shown(name, 200)}")
    else:
        G_LOGGER.finish(f"PASSED | Output: {shown(name, 200)} is valid")
    return bool(found)


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


def _invalid(value: Any, check_inf: bool, check_nan: bool) -> list[str]:
    """What of NaN and Inf is in it that must not be; of what is not finite, Inf tells too."""
    kind = array.dtype(value)
    if isinstance(kind, DataTypeEntry) and not kind.is_floating:
        return []
    nan = ["NaN"] if check_nan and array.any(array.isnan(value)) else []
    return [*nan, "Inf"] if check_inf and not array.all(array.isfinite(value)) else nan
