"""The last sentence of a triage: what was found, how sure that is, and what to do next."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.debugtools.triage.flow import FIRST
from layerwise._tool.debugtools.triage.rows import StepRow


def conclusion(rows: Sequence[StepRow], suspects: Sequence[SuspectRow], bundle: str | None) -> str:
    """Return the sentence. rows: the steps taken; bundle: the folder of the repro bundle, None if there is none."""
    last = rows[-1]
    if bundle:
        named = _suspect(suspects) if suspects else _reduced(rows) or "no single node was named."
        parts = [f"It fails: {named}", _answered(rows), f"{shown(bundle, 400)} shows it on its own."]
    elif nothing_wrong(rows):
        parts = [last.advice, _answered(rows)]
    else:
        named = f" ({_suspect(suspects).rstrip('.')})" if suspects else ""
        advice = last.advice or f"{last.question} {last.answer}."
        parts = [f"No failing case was written down{named}: the way ended at {last.title!r}.", advice, _answered(rows)]
    return " ".join(filter(None, parts))


def nothing_wrong(rows: Sequence[StepRow]) -> bool:
    """Whether there is no fault to find a way to: the outputs do not differ, or rounding explains it."""
    return (rows[-1].step, rows[-1].answer) in ((FIRST, "no"), ("layerwise", "explained"))


def _suspect(suspects: Sequence[SuspectRow]) -> str:
    first = suspects[0]
    more = f" and {len(suspects) - 1} more" if len(suspects) > 1 else ""
    return f"suspected is #{first.i} {shown(first.op, 40)} {shown(first.node, 80)} ({first.diagnosis}){more}."


def _reduced(rows: Sequence[StepRow]) -> str:
    """The culprit that reducing named, a sentence; "" if it named none."""
    return next((shown(row.evidence[0], 300) for row in rows if (row.step, row.answer) == ("reduce", "yes")), "")


def _answered(rows: Sequence[StepRow]) -> str:
    count = sum(row.by == "user" for row in rows)
    return f"{count} of {len(rows)} steps {'was' if count == 1 else 'were'} answered by you." if count else ""
