"""What a row of a comparison comes to, wherever it is shown: its word and the role of that, its error as a bar."""

import math

from layerwise._tool.tui.presenters.text import Glyphs, Run
from layerwise._tool.tui.state.error_table import FAILED, PASSED, UNKNOWN, ErrorTable
from layerwise._tool.tui.state.session import NodeError

DIAGNOSES = {
    "kernel": "off by more than rounding explains, on the reference's own inputs",
    "ill-conditioned": "right, but makes small differences of its inputs large",
    "overflow": "a value that is not finite first appears here",
    "nan": "NaN first appears here",
    "quantisation": "in few bits, and loses more than its format explains",
    "saturation": "its kernel for uint8 times int8 saturates on this CPU",
    "propagated": "hands on what came in",
    "clean": "as exact as its dtype allows",
}
"""What a diagnosis means."""
MEANINGS = DIAGNOSES | {
    "leap": "its inputs' errors do not explain its own: the trouble starts here",
    "skip": "from random numbers, other ones on each side: not compared",
    "random": "from random numbers, other ones on each side",
    "failed": "beyond the tolerance",
    "ok": "within the tolerance",
    "-": "no verdict",
}
"""What the word of a row means."""
DECADES = 8
"""Cells of the bar: one a power of ten, from 1e-8 to 1."""
BAR_TITLE = "L2 log10"
_PARTS = " ▏▎▍▌▋▊▉█"


def word_of(table: ErrorTable, place: int) -> Run:
    """The diagnosis of what is at fault or hands an error on, else the finding, else the verdict; and its role."""
    verdict = int(table.verdicts()[place])
    finding, diagnosis = _label(table, "finding", place), _label(table, "diagnosis", place)
    if bool(table.numbers("suspect")[place] == 1):
        return diagnosis, "bad" if verdict == FAILED else "warn"
    told = finding
    if verdict == FAILED and diagnosis not in ("", "clean") and not (table.imprecise and diagnosis == "kernel"):
        told = diagnosis
    return told or verdict_word({FAILED: False, PASSED: True}.get(verdict)), verdict_role(verdict, told)


def error_word(error: NodeError) -> Run:
    """What the worst row of a node comes to; and its role."""
    if error.table is not None and 0 <= error.place < len(error.table):
        return word_of(error.table, error.place)
    verdict = UNKNOWN if error.passed is None else PASSED if error.passed else FAILED
    return error.finding or verdict_word(error.passed), verdict_role(verdict, error.finding)


def verdict_word(passed: bool | None) -> str:
    """The verdict of a row without finding."""
    return {False: "failed", True: "ok", None: "-"}[passed]


def verdict_role(verdict: int, finding: str) -> str:
    """Bad where a layer goes wrong by itself, warn where it only hands on what came in."""
    if verdict != FAILED:
        return "" if finding in ("", "propagated", "skip") else "warn"
    return "warn" if finding == "propagated" else "bad"


def verdict_glyph(table: ErrorTable, place: int, glyphs: Glyphs) -> str:
    """The sign of a row's verdict, a blank without one."""
    return passed_glyph({FAILED: False, PASSED: True}.get(int(table.verdicts()[place])), glyphs)


def passed_glyph(passed: bool | None, glyphs: Glyphs) -> str:
    """The sign of a verdict, a blank without one."""
    return {False: glyphs.bad, True: glyphs.good, None: " "}[passed]


def error_bar(value: float, failed: bool, glyphs: Glyphs) -> Run:
    """A relative error as a bar of `DECADES` cells on a log scale, and the role that colours its power of ten.

    Full from 1 on, and for what is not finite; empty where nothing is known, or the error is 0.
    """
    if math.isinf(value) or (math.isnan(value) and failed):
        return glyphs.bars[-1] * DECADES, "bad"
    if math.isnan(value) or value <= 0:
        return " " * DECADES, ""
    length = min(float(DECADES), max(0.0, math.log10(value) + DECADES))
    return _drawn(length, glyphs), f"decade{max(1, math.ceil(length))}"


def _drawn(length: float, glyphs: Glyphs) -> str:
    if glyphs.ellipsis == "~":
        return ("#" * max(1, math.ceil(length))).ljust(DECADES)
    eighths = max(1, round(8 * length))
    whole, part = divmod(eighths, 8)
    return ("█" * whole + _PARTS[part] * (part > 0)).ljust(DECADES)


def _label(table: ErrorTable, name: str, place: int) -> str:
    codes, kinds = table.labels(name)
    return kinds[int(codes[place])]
