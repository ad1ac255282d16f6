"""The last sentence of a lint: what was found, how sure that is, and what to do next."""

from collections.abc import Sequence

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.checks.lint.report import Entry, Level, LintResult


def conclusion(result: LintResult, entries: Sequence[Entry]) -> str:
    """Return the sentence. entries: all findings."""
    bad = next((entry for entry in entries if entry.level == Level.EXCEPTION), None)
    if bad is not None:
        behind = f"Not reached behind it: {counted(result.unjudged, 'node')}. " if result.unjudged else ""
        return f"{_wrong(bad, result)} {behind}Mend that, and lint again."
    remarks = f" No fault, but told above: {counted(result.entries, 'remark')}." if result.entries else ""
    if not result.passing:
        return f"Nothing is wrong with its structure, but no node was run.{remarks}"
    left = f" Not needed for an output: {counted(result.unjudged, 'node')}." if result.unjudged else ""
    run = f"The model is sound: {counted(result.passing, 'node')} loaded and ran."
    return f"{run}{left}{remarks} Whether its numbers are right, `run` against a reference tells."


def _wrong(bad: Entry, result: LintResult) -> str:
    message = shown(next(iter(bad.message.strip().splitlines()), ""), 300).rstrip(".")
    if not bad.nodes:
        return f"The model is not sound: {message}."
    first = f"{shown(bad.op, 40)} {shown(bad.nodes[0], 80)}".strip()
    head = "1 node is at fault," if result.failing <= 1 else f"{result.failing} nodes are at fault, the first is"
    return f"{head} {first}: {message}."
