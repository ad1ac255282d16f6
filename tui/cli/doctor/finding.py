"""What the doctor finds: one row for each thing that was looked at."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from layerwise._tool.backends.text import shown

State = Literal["ok", "note", "wrong"]
_SIGNS = {"ok": "ok", "note": "--", "wrong": "!!"}
_NAME = 13


class Finding(Struct, frozen=True):
    """One thing. part: the heading it stands under; state: "note" is worth knowing and no fault; text: what was found,
    from anywhere; mend: a command line or a setting that mends it, "" where nothing is to be mended.
    """

    part: str
    name: str
    state: State
    text: str
    mend: str = ""


def report(findings: Iterable[Finding]) -> Iterator[str]:
    """The lines of the report."""
    part = ""
    for one in findings:
        if one.part != part:
            yield one.part
            part = one.part
        yield f"  {_SIGNS[one.state]} {one.name:<{_NAME}} {shown(one.text, 1000)}"
        if one.mend:
            word = "mend" if one.state == "wrong" else "to change it"
            yield f"     {'':<{_NAME}} {word}: {shown(one.mend, 1000)}"


def ending(findings: list[Finding]) -> str:
    """The last line."""
    wrong = [one.name for one in findings if one.state == "wrong"]
    return f"{len(wrong)} to mend: {', '.join(wrong)}" if wrong else "nothing to mend"
