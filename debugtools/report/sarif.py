"""A report as SARIF 2.1.0: what is wrong or worth a remark, at the model's file and at the Python line it comes from.

The first location of a result is the Python line if that file is in the current folder, as in a checked-out repository,
and else the model; the other one is a related location. Passed layers have no result.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from layerwise._tool import VERSION
from layerwise._tool.debugtools.report.figures import place, source_text
from layerwise._tool.debugtools.report.structure import Case, Part, Report
from layerwise._tool.debugtools.report.text import shown, shown_lines
from layerwise._tool.surgery.origin.origin import SourceLine

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_INSTALLED = {"site-packages", "dist-packages"}
_MOST = 25_000  # results of a run that GitHub takes
_RULES = {
    "compare": "A tensor of one side is not that of the other", "locate": "A node computes wrong results",
    "lint": "The model is not sound", "compatibility": "A backend does not take the model",
    "invariants": "A relation that needs no reference is broken", "search": "A search found what fails",
    "precision": "Precision of a node", "triage": "Outputs differ", "accuracy": "Saved results beyond a threshold",
}  # fmt: skip


def sarif(report: Report, root: Path) -> str:
    """The JSON document. root: the folder that files are named from, where they are in it."""
    return msgspec.json.format(msgspec.json.encode(_safe(_log(report, root))), indent=1).decode() + "\n"


def _safe(value: Any) -> Any:
    """The same with every text escaped; what is escaped already stays."""
    if isinstance(value, str):
        return shown_lines(value)
    if isinstance(value, dict):
        return {shown(key): _safe(inner) for key, inner in value.items()}
    return [_safe(inner) for inner in value] if isinstance(value, list) else value


def _log(report: Report, root: Path) -> dict[str, Any]:
    told = [(part, case) for part in report.parts for case in part.cases if _level(case)]
    rules = list(dict.fromkeys(_rule(case) for _, case in told))
    results = [_result(part, case, rules, root) for part, case in told[:_MOST]]
    run = {
        "tool": {"driver": {"name": "Layerwise", "version": VERSION, "rules": list(map(_described, rules))}},
        "automationDetails": {"id": f"layerwise/{_action(report)}/"},
        "originalUriBaseIds": {_ROOT: {"uri": _folder_uri(root)}},
        "invocations": [_invocation(part) for part in report.parts],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    left = len(told) - len(results)
    if left:
        note = {"level": "warning", "message": {"text": f"{left} more results are left out: a run takes {_MOST}"}}
        run["invocations"][0].setdefault("toolExecutionNotifications", []).append(note)  # type: ignore[index]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _level(case: Case) -> str:
    """Of its result, "" where it has none."""
    return case.severity or ("error" if case.outcome in ("failed", "error") else "")


def _rule(case: Case) -> str:
    return shown(case.rule, 200) or "layerwise/finding"


def _described(rule: str) -> dict[str, Any]:
    kind, _, what = rule.partition("/")
    text = _RULES.get(kind, "A finding of Layerwise")
    return {"id": rule, "shortDescription": {"text": shown(f"{text}: {what.replace('-', ' ')}" if what else text, 200)}}


def _result(part: Part, case: Case, rules: list[str], root: Path) -> dict[str, Any]:
    rule = _rule(case)
    python = _python_line(case.source, _in_repository(case.source.file, root), root) if case.source else None
    model = _model(part, case, root)
    first, other = (python, model) if python and _in_root(python) else (model or python, python if model else None)
    found: dict[str, Any] = {
        "ruleId": rule, "ruleIndex": rules.index(rule), "level": _level(case), "message": {"text": _message(case)},
        "partialFingerprints": {"layerwise/v1": _fingerprint(part, case)},
    }  # fmt: skip
    if first:
        found["locations"] = [first]
    if other:
        found["relatedLocations"] = [{"id": 1, **other, "message": {"text": "the other place of this node"}}]
    figures = {shown(key, 100): value for key, value in case.figures.items() if _finite(value)}
    if figures:
        found["properties"] = figures
    return found


def _message(case: Case) -> str:
    source = f"exported from {source_text(case.source)}" if case.source else ""
    where = place(case.i, case.op, case.node) or case.name
    parts = (where, f"tensor {case.tensor}" if case.tensor else "", case.message, source, case.detail)
    return shown_lines("\n".join(filter(None, parts)), 2000)


def _model(part: Part, case: Case, root: Path) -> dict[str, Any] | None:
    """The model's file. A file of weights has no lines: readers that need one are given the first."""
    if not part.model:
        return None
    name = shown(case.node or case.tensor, 500)
    found: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(part.model, root), "region": {"startLine": 1}}
    }
    if name:
        path = ".".join(filter(None, (shown(case.module, 500), name)))
        found["logicalLocations"] = [{"name": name, "fullyQualifiedName": path, "kind": "member"}]
    return found


def _python_line(source: SourceLine, here: Path | None, root: Path) -> dict[str, Any]:
    """The line; here: the file in the repository, None where it is not there."""
    region = {"startLine": max(1, source.line)}
    artifact = _outside(Path(source.file)) if here is None else _artifact(str(here), root)
    found: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    if source.function:
        found["logicalLocations"] = [{"name": shown(source.function, 200), "kind": "function"}]
    return found


@lru_cache(1000)
def _in_repository(file: str, root: Path) -> Path | None:
    """The file below the root that an exporter's path means, None if there is none.

    A model is often exported on another machine: what the path ends with, two names at least, is looked for.
    """
    path = Path(os.path.normpath(root / file))
    try:
        if path.is_relative_to(root):
            return path if path.is_file() else None
        if _INSTALLED.intersection(path.parts):
            return None
        ends = (root.joinpath(*path.parts[at:]) for at in range(1, len(path.parts) - 1))
        return next((end for end in ends if end.is_file()), None)
    except (OSError, ValueError):  # a name that no file can have
        return None


def _artifact(path: str, root: Path) -> dict[str, Any]:
    """A file below the root by its name there, others by their whole path."""
    whole = Path(os.path.normpath(root / path))
    try:
        inner = whole.relative_to(root)
    except ValueError:
        return _outside(whole)
    return {"uri": quote(os.fsencode(inner.as_posix())), "uriBaseId": _ROOT}


def _outside(path: Path) -> dict[str, Any]:
    """A file by its whole path; one that has none by its name alone."""
    name = quote(os.fsencode(path.as_posix()))
    return {"uri": f"file://{name}" if path.is_absolute() else name}


def _in_root(location: dict[str, Any]) -> bool:
    return "uriBaseId" in location["physicalLocation"]["artifactLocation"]


def _folder_uri(root: Path) -> str:
    return f"file://{quote(os.fsencode(root.as_posix())).rstrip('/')}/"


def _fingerprint(part: Part, case: Case) -> str:
    """The same for the same finding in the next run: of what it is, not of its numbers or its position."""
    name = case.node or case.tensor or case.name
    parts = (part.key, part.action, Path(part.model).name, _rule(case), name, case.tensor)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _invocation(part: Part) -> dict[str, Any]:
    carried_out = not any(case.outcome == "error" for case in part.cases)
    found: dict[str, Any] = {"executionSuccessful": carried_out}
    if part.command:
        found["commandLine"] = shown(part.command, 4000)
    if part.exit_code is not None:
        found["exitCode"] = part.exit_code
    if part.started is not None:
        found["startTimeUtc"] = _time(part.started)
        found["endTimeUtc"] = _time(part.started + (part.seconds or 0.0))
    notes = list(_notifications(part))
    if notes:
        found["toolExecutionNotifications"] = notes
    return found


def _notifications(part: Part) -> Iterator[dict[str, Any]]:
    """The conclusion, and what was not judged: a result is a finding, and these are none."""
    if part.conclusion:
        yield {"level": "note", "message": {"text": shown_lines(part.conclusion, 2000)}}
    skipped = [case for case in part.cases if case.outcome == "skipped"]
    for case in skipped[:100]:
        text = f"not judged: {case.name}: {case.message}"
        yield {"level": "note", "message": {"text": shown(text, 1000)}}
    if len(skipped) > 100:
        yield {"level": "note", "message": {"text": f"not judged: {len(skipped) - 100} more"}}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _action(report: Report) -> str:
    actions = list(dict.fromkeys(part.action for part in report.parts))
    return actions[0] or "command" if len(actions) == 1 else "matrix"


def _finite(value: object) -> bool:
    return not isinstance(value, float) or abs(value) < float("inf")
