"""Turns the events of a comparison into the report, as they come.

Rows of one iteration and pair are held until the pair is done, because a report goes metric by metric; where there are
more than a few, only the failures are printed as they come and the rest is counted.
"""

from typing import Any

from msgspec import convert

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import INFO, LEVELS, WARNING, Log
from layerwise._tool.backends.text import shown_lines
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import IN_FULL, InputsRow, LayerRow, Pair, RunRow, TensorInfo, ValidateRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.table import report_lines as lines
from layerwise._tool.tui.cli.run.report_summary import Totals, essence

_LISTED = 10


class CompareReport:
    """Prints the report of one comparison from its events; `event` is called with each in turn."""

    def __init__(self, log: Log, spec: CompareSpec, job: object = None) -> None:
        self.log = log
        self.spec = spec
        self.job = job
        self.totals = Totals()
        self._fed = ""
        self._live = sum(runner.kind != "saved" for runner in spec.runners)
        self.runners: dict[int, str] = {}
        self._valid = True
        self._iteration: int | None = None
        self._block: _Block | None = None
        self._paired: set[Pair] = set()
        self._said: set[tuple[str, object]] = set()
        self._held: list[tuple[int, str]] = []

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row":
            self._row(event["table"], event["row"])
        elif kind in ("log", "warning"):
            level = LEVELS.get(str(event.get("level", kind)).upper(), WARNING if kind == "warning" else INFO)
            self._held.append((level, shown_lines(event.get("text"))))
            if self._block is None or self._block.compact:
                self._say_held()
        elif kind == "dropped":
            self._drop(event["kept"])
        elif kind == "result":
            self._result(convert(event["data"], CompareResult))
        elif kind in ("card", "state"):
            self._say_held()

    def _say_held(self) -> None:
        """Print the messages that came while the rows of a block were awaited."""
        for level, text in self._held:
            self.log.say(level, text, source="backend")
        self._held.clear()

    def _drop(self, kept: list[str]) -> None:
        """Another attempt makes rows anew: they are counted once."""
        self.totals.forget_runs()
        if "layers" not in kept:
            self.totals, self._block, self._iteration = Totals(), None, None
            self._valid = True

    def _row(self, table: str, fields: object) -> None:
        if table == "inputs":
            self._inputs(convert(fields, InputsRow))
        elif table == "runs":
            self._run(convert(fields, RunRow))
        elif table == "layers":
            self._layer(convert(fields, LayerRow))
        elif table == "validate":
            row = convert(fields, ValidateRow)
            self.log.error(f"FAILED | Errors detected in output: {lines.name(row.tensor)}", source="comparator")
            self._valid = False

    def _inputs(self, row: InputsRow) -> None:
        if row.inputs and self.spec.sequential:
            self._fed = _metadata(row.inputs)
        elif row.inputs:
            text = f"Streaming iteration {row.iteration}\n---- Inference Input(s) ----\n{_metadata(row.inputs)}"
            self.log.info(text, source="comparator")

    def _run(self, row: RunRow) -> None:
        self.runners[row.index] = row.runner
        if row.index >= self._live:
            return  # read from a file
        self.totals.ran(row.index, row.runtime)
        if self._first("run", row.index):
            many = len(row.outputs) > IN_FULL and not self.log.shows(LEVELS["VERBOSE"])
            shown_outputs = f"{{{len(row.outputs)} tensors}}" if many else _metadata(row.outputs)
            if self._fed:
                head = f"{lines.name(row.runner):35}\n---- Inference Input(s) ----\n{self._fed}"
                self.log.info(head, source="comparator")
            text = f"{lines.name(row.runner):35}\n---- Inference Output(s) ----\n{shown_outputs}"
            self.log.info(text, source="comparator")

    def _layer(self, row: LayerRow) -> None:
        key = row.iteration, row.pair
        if self._block is None or self._block.key != key:
            self._close_block()
            self._head(key)
            self._block = _Block(key, self._pair_names(row.pair), self.log, self.spec)
        self.totals.compared(row)
        self._block.add(row)

    def _head(self, key: tuple[int, Pair]) -> None:
        iteration, pair = key
        if pair not in self._paired:
            self._paired.add(pair)
            first, second = self._pair_names(pair)
            self.log.start(f"Accuracy Comparison | {first} vs. {second}", source="comparator")
        if iteration != self._iteration:
            self._iteration = iteration
            self.log.info(f"Iteration: {iteration}", source="comparator")

    def _close_block(self) -> None:
        if self._block is not None:
            self._block.close()
            self._block = None
        self._say_held()

    def _result(self, result: CompareResult) -> None:
        self._close_block()
        for index, runner in enumerate(result.runners):
            self.runners.setdefault(index, runner)
        if self.spec.validate:
            valid = self._valid and result.valid is not False
            self.log.verdict(valid, f"{'PASSED' if valid else 'FAILED'} | Output Validation", source="comparator")
        for text in self.totals.timings(self.runners):
            self.log.info(text, source="comparator")
        for ok, text in self.totals.accuracy(self.runners, self.spec, result):
            self.log.verdict(ok, text, source="comparator")
        for level, text in essence(result, self.spec, self.totals, self.job):
            self.log.say(level, text, source="comparator")

    def _pair_names(self, pair: Pair) -> tuple[str, str]:
        first, second = (lines.name(self.runners.get(index, f"runner {index}")) for index in pair)
        return first, second

    def _first(self, what: str, key: object) -> bool:
        new = (what, key) not in self._said
        self._said.add((what, key))
        return new


class _Block:
    """The rows of one iteration and pair."""

    def __init__(self, key: tuple[int, Pair], names: tuple[str, str], log: Log, spec: CompareSpec) -> None:
        self.key = key
        self.names = names
        self.log = log
        self.spec = spec
        self.rows: list[LayerRow] = []
        self.compact = False
        self.failed: dict[str, list[str]] = {metric: [] for metric in self._metrics()}
        self.judged = dict.fromkeys(self.failed, 0)

    def add(self, row: LayerRow) -> None:
        for metric in self.failed:
            self.judged[metric] += lines.judged(row, metric)
            if not lines.passed(row, metric):
                self.failed[metric].append(lines.name(row.tensor))
        self.rows.append(row)
        if self.compact or (len(self.rows) > IN_FULL and not self.log.shows(LEVELS["VERBOSE"], "comparator")):
            self.compact = True
            self._print_failures()

    def close(self) -> None:
        with self.log.indent():
            for metric in self.failed:
                self._print_metric(metric)
        for row in self.rows:
            self._print(lines.side_stats(row, self.names))

    def _metrics(self) -> list[str]:
        return ["script"] if self.spec.compare_script else list(self.spec.metrics)

    def _print_failures(self) -> None:
        with self.log.indent():
            for row in self.rows:
                if row.passed is False:
                    self.log.error(f"FAILED | {lines.compact(row)}", source="comparator")
        self.rows.clear()

    def _print_metric(self, metric: str) -> None:
        for row in self.rows:
            self._print(lines.metric_lines(row, metric, self.spec.tolerance), depth=-1)
        bad = self.failed[metric]
        if bad:
            self.log.error(f"FAILED | {lines.label(metric)} | Mismatched outputs: {_listed(bad)}", source="comparator")
        elif not self.judged[metric]:
            self.log.warning(f"SKIPPED | {lines.label(metric)} | No output was compared", source="comparator")
        else:
            names: object = [lines.name(row.tensor) for row in self.rows if lines.judged(row, metric)]
            if self.compact:
                names = f"{self.judged[metric]} tensors"
            text = f"PASSED | {lines.label(metric)} | All outputs matched | Outputs: {names}"
            self.log.finish(text, source="comparator")

    def _print(self, found: Any, depth: int = 0) -> None:
        for line in found:
            with self.log.indent(line.depth + depth):
                self.log.say(line.level, line.text, source="comparator")


def _metadata(tensors: list[TensorInfo]) -> str:
    items = [f"{lines.name(t.name)} [dtype={t.dtype}, shape={lines.shape(t.shape)}]" for t in tensors]
    return "{" + ",\n ".join(items) + "}"


def _listed(names: list[str]) -> str:
    more = f" … and {len(names) - _LISTED} more" if len(names) > _LISTED + 1 else ""
    return f"{names[:_LISTED] if more else names}{more}"
