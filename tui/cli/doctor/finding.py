"""What the doctor finds: one row for each thing that was looked at."""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Literal

from msgspec import Struct

from layerwise._tool.backends.text import shown

State = Literal["ok", "note", "wrong"]
_SIGNS = {"ok": "ok", "note": "--", "wrong": "!!"}
_NAME = 14
_TEXT = 5 + _NAME + 1
ENGINE = ("Installation", "onnxruntime")
"""Heading and name of the finding without which models cannot be run."""


class Finding(Struct, frozen=True):
    """One thing. part: the heading it stands under; state: "note" is worth knowing and no fault; text: what was found,
    from anywhere; mend: a command line or a setting that mends it, "" where nothing is to be mended.
    """

    part: str
    name: str
    state: State
    text: str
    mend: str = ""


def report(findings: Iterable[Finding], cells: int = 0) -> Iterator[str]:
    """The lines of the report; what was found is broken between words to `cells`, commands stay one line to paste."""
    part = ""
    for one in findings:
        if one.part != part:
            yield one.part
            part = one.part
        first, *rest = _broken(shown(one.text, 1000), cells - _TEXT)
        yield f"  {_SIGNS[one.state]} {one.name:<{_NAME}} {first}"
        yield from (" " * _TEXT + text for text in rest)
        if one.mend:
            word = "mend" if one.state == "wrong" else "to change it"
            yield f"{' ' * _TEXT}{word}: {shown(one.mend, 1000)}"


def _broken(text: str, cells: int) -> list[str]:
    return wrap(text, cells, break_long_words=False, break_on_hyphens=False) if len(text) > cells >= 20 else [text]


def ending(findings: list[Finding]) -> str:
    """The last line."""
    wrong = [one.name for one in findings if one.state == "wrong"]
    if wrong:
        return f"{len(wrong)} to mend: {', '.join(wrong)}"
    lacking = next((one.mend for one in findings if (one.part, one.name, one.state) == (*ENGINE, "note")), "")
    return f"nothing to mend; before models can be run: {lacking}" if lacking else "nothing to mend"
