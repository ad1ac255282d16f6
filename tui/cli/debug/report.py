"""A search as plain text, with the lines that Polygraphy's users look for, and as one JSON document."""

from collections import Counter
from typing import Any

from layerwise._tool.backends.log import ERROR, FINISH, INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.tui.cli.json_output import Collector

Row = dict[str, Any]
_PHASES = {
    "outputs": "reducing model outputs", "inputs": "reducing model inputs", "narrow": "mixing tactics",
}  # fmt: skip
_SEARCHES = {"bisect": "bisecting the model", "repeat": "repeating", "build": "building"}
_WORDS = {"good": ("PASSED", FINISH), "bad": ("FAILED", ERROR), "skip": ("SKIPPED", WARNING)}
_NUMBERS = ("rel_l2", "max_abs", "max_rel", "exit_code")


class SearchReport:
    """Prints the report from the job's events. what: reduce, bisect, repeat or precision."""

    DOING, BEST = "reducing", "Smallest failing model so far"

    def __init__(self, log: Log, what: str) -> None:
        self.log, self._what = log, what
        self._rows: list[Row] = []
        self._phase: str | None = None
        self._numbers: dict[str, dict[str, int]] = {}
        self._left: int | None = None

    def event(self, event: Row) -> None:
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event)

    def _on_log(self, event: Row) -> None:
        level = LEVELS.get(str(event.get("level", "info")).upper(), INFO)
        self.log.say(level, shown_lines(event.get("text")), source="tools")

    def _on_warning(self, event: Row) -> None:
        self.log.warning(shown_lines(event.get("text")), source="tools")

    def _on_progress(self, event: Row) -> None:
        if event.get("unit") == "checks":
            total = event.get("total")
            self._left = None if total is None else max(0, int(total) - int(event.get("done") or 0))

    def _on_dropped(self, event: Row) -> None:
        if "verdicts" not in event["kept"]:
            self._rows, self._numbers, self._phase, self._left = [], {}, None, None

    def _on_row(self, event: Row) -> None:
        row = event.get("row") or {}
        if event.get("table") == "verdicts":
            self._undone(row) if row.get("undo") else self._verdict(row)
        elif event.get("table") == "band" and row.get("candidate"):
            self._announce(row["candidate"])
        elif event.get("table") == "best":
            nodes = f"{row.get('count')} node{'s' * (row.get('count') != 1)}"
            self.log.info(f"{self.BEST}: {nodes}, saved to {shown(str(row.get('path')))}", "tools")

    def _undone(self, row: Row) -> None:
        number = next((self._announce(known) for known in self._rows if known["n"] == row["n"]), row["n"])
        self._rows = [known for known in self._rows if known["n"] != row["n"]]
        self._numbers.clear()
        for known in self._rows:
            numbers = self._numbers.setdefault(str(known.get("phase") or ""), {})
            numbers[str(known.get("key"))] = len(numbers) + 1
        with self.log.indent():
            self.log.info(f"Iteration {number} taken back", source="tools")

    def _verdict(self, row: Row) -> None:
        word, level = _WORDS.get(str(row.get("verdict")), ("?", WARNING))
        phase = str(row.get("phase") or "")
        detail = _detail(row)
        if phase == "original" and row.get("by") == "person":
            return  # nobody was asked
        if phase == "original" or phase.startswith("verify"):
            what = "The original model" if phase == "original" else f"Checking the result ({row.get('nodes')} nodes)"
            self._close()
            self.log.say(level, f"{word} | {what} | Duration {row['seconds']:.3f}s{detail}", source="tools")
            return
        self._rows.append(row)
        number = self._announce(row)
        with self.log.indent():
            self.log.say(level, f"{word} | Iteration {number} | Duration {row['seconds']:.3f}s{detail}", source="tools")

    def _announce(self, candidate: Row) -> int:
        """Say that a candidate is judged now, once; its number within its phase."""
        phase, key = str(candidate.get("phase") or ""), str(candidate.get("key"))
        if phase != self._phase:
            self._close()
            self._phase = phase
            text = self._doing(phase)
            self.log.start(text[0].upper() + text[1:], source="tools")
        numbers = self._numbers.setdefault(phase, {})
        if key not in numbers:
            numbers[key] = len(numbers) + 1
            left = "" if self._left is None else f" | Approximately {self._left} iteration(s) remaining"
            with self.log.indent():
                self.log.start(f"RUNNING | Iteration {numbers[key]}{left}", source="tools")
        return numbers[key]

    def _close(self) -> None:
        """Count a phase that has ended."""
        if self._phase is None:
            return
        rows = [row for row in self._rows if (row.get("phase") or "") == self._phase]
        passed, total = Counter(row["verdict"] for row in rows)["good"], max(1, len(rows))
        self.log.finish(
            f"Finished {len(rows)} iteration(s) | Passed: {passed}/{len(rows)} | Pass Rate: {passed * 100.0 / total}%",
            source="tools",
        )
        self.log.finish(f"Finished {self._doing(self._phase)}", source="tools")
        self._phase = None

    def _doing(self, phase: str) -> str:
        return _PHASES.get(phase) or _SEARCHES.get(self._what) or f"{self.DOING} the model"

    def _on_result(self, event: Row) -> None:
        result = event.get("data") or {}
        self._close()
        for found in result.get("found") or []:
            self._found(found)
        if result.get("min_good"):
            self.log.info(f"Minimum Good Model: {shown(str(result['min_good']))}", source="tools")
        counts = f"{result.get('checks', 0)} checks, {result.get('seconds', 0):.1f} s"
        text = f"{shown(str(result.get('summary', '')), 2000)} ({counts})"
        self.log.verdict(bool(result.get("passed")), text, source="tools")

    def _found(self, found: Row) -> None:
        nodes = found.get("nodes") or []
        self.log.info(f"Minimum Bad Model: {shown(str(found.get('path')))}", source="tools")
        for node in [*nodes[:20], *({**node, "glue": True} for node in (found.get("glue") or [])[:20])]:
            made = ", ".join(shown(name, 80) for name in node.get("outputs") or [])
            glue = "  (needed by it)" if node.get("glue") else ""
            self.log.continued(
                f"    {node['i']:>6}  {shown(node['op'], 40)}  {shown(node['node'], 120)} -> {made}{glue}"
            )
        if len(nodes) > 20:
            self.log.continued(f"    … and {len(nodes) - 20} more")
        measured = measured_text(found.get("measured") or {})
        if measured:
            self.log.continued(f"    {measured}")


def document(collector: Collector, command: str, code: int) -> Row:
    """The one document of `--json`."""
    verdicts = collector.tables.get("verdicts", [])
    undone = {row["n"] for row in verdicts if row.get("undo")}
    kept = [row for row in verdicts if not row.get("undo") and row["n"] not in undone]
    result = {key: value for key, value in (collector.result or {}).items() if key != "passed"}
    return {
        "command": command, "exit_code": code, "passed": code == 0, **result, "verdicts": kept,
        "messages": collector.messages, "error": collector.card,
    }  # fmt: skip


def _detail(row: Row) -> str:
    parts = [f"{row['nodes']} nodes"] if row.get("nodes") else []
    if row.get("node"):
        parts.append(f"at {shown(row['node'], 80)} ({shown(str(row.get('op')), 40)})")
    parts += [
        measured_text(row.get("measured") or {}),
        f"by {row['by']}" if row.get("by") in ("cache", "replay") else "",
    ]
    parts.append(shown(str(row.get("note") or ""), 300))
    return "".join(f" | {part}" for part in parts if part)


def measured_text(measured: Row) -> str:
    """A judgement's numbers in a few words."""
    where = f"{shown(str(measured['tensor']), 80)}: " if measured.get("tensor") else ""
    numbers = [f"{key} {measured[key]:.3g}" for key in _NUMBERS if isinstance(measured.get(key), int | float)]
    return where + ", ".join(numbers) if numbers else ""
