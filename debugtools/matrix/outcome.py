"""What a cell's job has come to, read from its folder."""

import hashlib
import json
import platform
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.text import one_line, shown
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import NotCompared
from layerwise._tool.debugtools.matrix.rows import Receipt, Verdict
from layerwise._tool.debugtools.matrix.spec import Order
from layerwise._tool.debugtools.report.parts import folder_part

_TABLES = frozenset({"layers", "suspects", "lint", "operators", "backends", "validate", "invariants"})
"""Tables whose rows hold no times."""
_LONGEST, _SUSPECT = 400, 200


def receipt_of(order: Order, view: JobView, versions: Mapping[str, str]) -> Receipt:
    """The receipt of a cell whose own job has ended: one that did what it was asked to, or not."""
    seen = Receipt(
        key=order.key, verdict="cancelled", job=view.id, path=str(view.folder), seconds=seconds_of(view),
        ended=time.time(), versions=dict(versions), machine=platform.node(),
    )  # fmt: skip
    if view.state != "done":
        return _not_done(seen, view)
    other = _other_files(view, order.files)
    if other:
        text = f"{shown(other, 120)} is not what the matrix was planned with: it has changed, or is another file here"
        return replace(seen, verdict="refused", text=text)
    result = view.result or {}
    verdict: Verdict = "failed" if result.get("passed") is False or _found_a_fault(view) else "passed"
    text = _short(result.get("conclusion") or result.get("summary") or "")
    return replace(seen, verdict=verdict, gaps=_gaps(result), digest=digest_of(view), text=text)


def _found_a_fault(view: JobView) -> bool:
    """Whether a job that did what it was to do names a fault in its model, as a search that found one does."""
    return folder_part(view.folder).outcome == "failed"


def lost(order: Order, view: JobView, losses: int) -> Receipt:
    """The receipt of a cell whose process was lost too often."""
    text = f"its process was killed {losses} times, by whom is not known: it is not tried again (--again tries it)"
    return Receipt(key=order.key, verdict="lost", kind="lost", job=view.id, path=str(view.folder), text=text,
                   losses=losses, ended=time.time(), machine=platform.node())  # fmt: skip


def _not_done(seen: Receipt, view: JobView) -> Receipt:
    card = view.card or {}
    if view.state == "cancelled":
        return replace(seen, verdict="cancelled", text="cancelled")
    kind = "lacking" if card.get("lacking") else str(card.get("kind", view.state))
    return replace(seen, verdict="error", kind=kind, text=told(view))


def told(view: JobView) -> str:
    """How a job ended that did not do what it was asked to, in a sentence."""
    return _short((view.card or {}).get("summary") or view.state)


def _gaps(result: Mapping[str, Any]) -> int:
    """How many tensors or iterations were not compared that nobody asked to leave out."""
    try:
        return sum(map(unasked, msgspec.convert(result.get("not_compared") or [], list[NotCompared])))
    except msgspec.ValidationError:
        return 0


def seconds_of(view: JobView) -> float:
    """How long the latest attempt of a job ran."""
    return max(0.0, (view.ended or 0.0) - (view.started or view.ended or 0.0))


def _short(text: object) -> str:
    return shown(one_line(str(text)), _LONGEST)


def suspect_of(result: Mapping[str, Any] | None) -> str:
    """The worst suspect of a locate job in a few words; what it concludes where there is none."""
    suspects = (result or {}).get("suspects") or []
    if not suspects or not isinstance(suspects[0], dict):
        return shown(one_line(f"none: {(result or {}).get('conclusion') or 'it did not end well'}"), _SUSPECT)
    worst = suspects[0]
    return shown(
        one_line(f"#{worst.get('i')} {worst.get('op')} {worst.get('node')}: {worst.get('diagnosis')}"), _SUSPECT
    )


def culprits_of(result: Mapping[str, Any] | None) -> list[int]:
    """Positions of the nodes of the worst suspect's region."""
    suspects = (result or {}).get("suspects") or []
    region = (suspects[0].get("region") or [suspects[0]]) if suspects and isinstance(suspects[0], dict) else []
    return [int(node["i"]) for node in region if isinstance(node, dict) and isinstance(node.get("i"), int)]


def digest_of(view: JobView) -> str:
    """A hash of the rows of a job that are the same whenever it is done again; "" if it has none."""
    lines: set[bytes] = set()
    for event in read_events(view.folder):
        if event["type"] == "row" and event["table"] in _TABLES:
            lines.add(json.dumps([event["table"], event["row"]], sort_keys=True).encode())
        elif event["type"] == "dropped":
            kept = set(event.get("kept") or [])
            lines = {line for line in lines if json.loads(line)[0] in kept}
    made = hashlib.blake2b(digest_size=16)
    for line in sorted(lines):
        made.update(line + b"\n")
    return made.hexdigest() if lines else ""


def _other_files(view: JobView, planned: Mapping[str, str]) -> str:
    """The file that the job found to be another one than was planned, "" if it noted all as they were, or nothing."""
    noted: Mapping[str, Any] = {}
    for event in read_events(view.folder):
        if event["type"] == "identity" and event.get("files"):
            noted = event["files"]
    return next((name for name in planned if noted and _hash(noted, name) != planned[name]), "")


def _hash(noted: Mapping[str, Any], name: str) -> str:
    facts = noted.get(name)
    return str(facts.get("hash")) if isinstance(facts, dict) else ""


def refused(key: str, differences: Sequence[str]) -> Receipt:
    """The receipt of a cell that is not run here, since other versions would compute it."""
    text = f"{platform.node()}: {'; '.join(differences)}"
    return Receipt(key=key, verdict="refused", kind="versions", text=_short(text), machine=platform.node())
