"""A search as plain text, with the lines that Polygraphy's users look for, and as one JSON document."""

from msgspec import convert

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import ERROR, FINISH, INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.search import rows as types
from layerwise._tool.tui.cli.json_output import Collector

_PHASES = {
    "outputs": "reducing model outputs", "inputs": "reducing model inputs", "narrow": "mixing tactics",
}  # fmt: skip
_SEARCHES = {"bisect": "bisecting the model", "repeat": "repeating", "build": "building", "layers": "marking layers"}
_COMMANDS = {"layers": "precision"}
_WORDS = {"good": ("PASSED", FINISH), "bad": ("FAILED", ERROR), "skip": ("SKIPPED", WARNING)}


class SearchReport:
    """Prints the report from the job's events. what: reduce, bisect, repeat or precision."""

    DOING, BEST = "reducing", "Smallest failing model so far"

    def __init__(self, log: Log, what: str) -> None:
        self.log, self._what = log, what
        self._rows: list[types.VerdictRow] = []
        self._phase: str | None = None
        self._numbers: dict[str, dict[str, int]] = {}
        self._left: int | None = None

    def event(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event)

    def _on_log(self, event: Event) -> None:
        level = LEVELS.get(str(event.get("level", "info")).upper(), INFO)
        self.log.say(level, shown_lines(event.get("text")), source="tools")

    def _on_warning(self, event: Event) -> None:
        self.log.warning(shown_lines(event.get("text")), source="tools")

    def _on_progress(self, event: Event) -> None:
        if event.get("unit") == "checks":
            total = event.get("total")
            self._left = None if total is None else max(0, int(total) - int(event.get("done") or 0))

    def _on_dropped(self, event: Event) -> None:
        if "verdicts" not in event["kept"]:
            self._rows, self._numbers, self._phase, self._left = [], {}, None, None

    def _on_row(self, event: Event) -> None:
        table, row = event.get("table"), event.get("row")
        if table == "verdicts":
            verdict = types.read_verdict(row)
            self._undone(verdict) if isinstance(verdict, types.UndoRow) else self._verdict(verdict)
        elif table == "band":
            if candidate := convert(row, types.BandRow).candidate:
                self._announce(candidate)
        elif table == "best":
            best = convert(row, types.BestRow)
            nodes = f"{best.count} node{'s' * (best.count != 1)}"
            self.log.info(f"{self.BEST}: {nodes}, saved to {shown(best.path)}", "tools")

    def _undone(self, row: types.UndoRow) -> None:
        number = next((self._announce(known) for known in self._rows if known.n == row.n), row.n)
        self._rows = [known for known in self._rows if known.n != row.n]
        self._numbers.clear()
        for known in self._rows:
            numbers = self._numbers.setdefault(known.phase, {})
            numbers[known.key] = len(numbers) + 1
        with self.log.indent():
            self.log.info(f"Iteration {number} taken back", source="tools")

    def _verdict(self, row: types.VerdictRow) -> None:
        word, level = _WORDS[row.verdict]
        phase, detail = row.phase, _detail(row)
        if phase == "original" and row.by == "person":
            return  # nobody was asked
        if phase == "original" or phase.startswith("verify"):
            self._close()
            self._checked(row, detail)
            return
        self._rows.append(row)
        number = self._announce(row)
        with self.log.indent():
            if row.by == "replay":
                success = row.verdict != "bad"
                self.log.info(f"Loading iteration information from debug replay: success={success}", source="tools")
            self.log.say(level, f"{word} | Iteration {number} | Duration {row.seconds}s", source="tools")
            if detail:
                with self.log.indent():
                    self.log.info(detail, source="tools")

    def _checked(self, row: types.VerdictRow, detail: str) -> None:
        """The model before the search, and what it found: that it fails is as it should be."""
        what = "The original model" if row.phase == "original" else f"The result ({row.nodes} nodes)"
        told = {"good": "passes", "bad": "fails", "skip": "cannot be judged"}[row.verdict]
        level = INFO if row.verdict == "bad" or row.phase == "original" else WARNING
        self.log.say(
            level, f"{what} {told} | Duration {row.seconds:.3f}s | {detail}".removesuffix(" | "), source="tools"
        )

    def _announce(self, candidate: types.CandidateRow | types.VerdictRow) -> int:
        """Say that a candidate is judged now, once; its number within its phase."""
        phase, key = candidate.phase, candidate.key
        if phase != self._phase:
            self._close()
            self._phase = phase
            text = self._doing(phase)
            self.log.start(text[0].upper() + text[1:], source="tools")
        numbers = self._numbers.setdefault(phase, {})
        if key not in numbers:
            numbers[key] = len(numbers) + 1
            counted = self._left is not None and self._what not in ("repeat", "build")
            left = "" if not counted else f" | Approximately {self._left} iteration(s) remaining"
            with self.log.indent():
                self.log.start(f"RUNNING | Iteration {numbers[key]}{left}", source="tools")
        return numbers[key]

    def _close(self) -> None:
        """Count a phase that has ended."""
        if self._phase is None:
            return
        rows = [row for row in self._rows if row.phase == self._phase]
        passed, total = sum(row.verdict == "good" for row in rows), max(1, len(rows))
        self.log.finish(
            f"Finished {len(rows)} iteration(s) | Passed: {passed}/{len(rows)} | Pass Rate: {passed * 100.0 / total}%",
            source="tools",
        )
        self.log.finish(f"Finished {self._doing(self._phase)}", source="tools")
        self._phase = None

    def _doing(self, phase: str) -> str:
        return _PHASES.get(phase) or _SEARCHES.get(self._what) or f"{self.DOING} the model"

    def _on_result(self, event: Event) -> None:
        result = convert(event.get("data"), types.NodeSearchResult)
        self._close()
        for found in result.found:
            self.log.info(f"Minimum Bad Model: {shown(found.path)}", source="tools")
            self._nodes(found, found.glue, 20)
        if result.min_good:
            self.log.info(f"Minimum Good Model: {shown(result.min_good)}", source="tools")
        self._concluded(result)

    def _concluded(self, result: types.SearchResult) -> None:
        counts = f"{result.checks} checks, {result.seconds:.1f} s"
        self.log.verdict(
            result.passed, f"layerwise debug {_COMMANDS.get(self._what, self._what)}: {counts}", source="tools"
        )
        if not result.conclusion:  # of an older version
            self.log.verdict(result.passed, shown(result.summary, 2000), source="tools")

    def _nodes(self, found: types.FoundRow, glue: list[types.Node], most: int) -> None:
        """The nodes that were found and those that they need, with what was measured."""
        for node, more in [*((node, "") for node in found.nodes[:most]),
                           *((node, "  (needed by it)") for node in glue[:most])]:  # fmt: skip
            made = ", ".join(shown(name, 80) for name in node.outputs if name)
            self.log.continued(f"    {node.i:>6}  {shown(node.op, 40)}  {shown(node.node, 120)} -> {made}{more}")
        if len(found.nodes) > most:
            self.log.continued(f"    … and {len(found.nodes) - most} more")
        if measured := measured_text(found.measured):
            self.log.continued(f"    {measured}")


def document(collector: Collector, command: str, code: int) -> dict[str, object]:
    """The one document of `--json`."""
    verdicts = collector.tables.get("verdicts", [])
    undone = {row["n"] for row in verdicts if row.get("undo")}
    kept = [row for row in verdicts if not row.get("undo") and row["n"] not in undone]
    result = {key: value for key, value in (collector.result or {}).items() if key != "passed"}
    return {
        "command": command, "exit_code": code, "passed": code == 0, **result, "verdicts": kept,
        "messages": collector.messages, "error": collector.card,
    }  # fmt: skip


def _detail(row: types.VerdictRow) -> str:
    parts = [f"{row.nodes} nodes"] if row.nodes else []
    parts += [f"at {shown(row.node, 80)} ({shown(str(row.op), 40)})"] if row.node else []
    parts += [measured_text(row.measured), f"by {row.by}" if row.by in ("cache", "replay") else ""]
    parts.append(shown(row.note, 300))
    return " | ".join(filter(None, parts))


def measured_text(measured: types.Numbers) -> str:
    """A judgement's numbers in a few words."""
    numbers = {"rel_l2": measured.rel_l2, "max_abs": measured.max_abs, "max_rel": measured.max_rel,
               "exit_code": measured.exit_code}  # fmt: skip
    told = [f"{name} {value:.3g}" for name, value in numbers.items() if value is not None]
    where = f"{shown(measured.tensor, 80)}: " if measured.tensor else ""
    return where + ", ".join(told) if told else ""
