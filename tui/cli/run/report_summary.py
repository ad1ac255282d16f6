"""What a comparison comes to: pass rates, timings, and the essence of the layer table."""

import math
from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from layerwise._tool.backends.log import ERROR, FINISH, INFO, WARNING
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.quantised.told import held_text
from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult
from layerwise._tool.debugtools.compare.result import Average, CompareResult, TruthResult
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, unsaved
from layerwise._tool.debugtools.compare.table import report_lines as lines
from layerwise._tool.surgery.origin.origin import dotted
from layerwise._tool.tui.cli.request.line import command_line

_ORIGINS = 8  # bad tensors whose error begins with them that are kept for the last lines


class Totals:
    """Counts over all rows of a comparison; small whatever the number of rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.failed = self.skipped = 0
        self.worst: LayerRow | None = None
        self.first_bad: LayerRow | None = None
        self.origins: list[LayerRow] = []
        self._iterations: dict[Pair, dict[int, bool]] = {}
        self._compared: dict[Pair, bool] = {}
        self._runtimes: dict[int, list[float]] = {}

    def ran(self, runner: int, seconds: float | None) -> None:
        if seconds is not None:
            self._runtimes.setdefault(runner, []).append(seconds)

    def forget_runs(self) -> None:
        """The runners run again."""
        self._runtimes.clear()

    def compared(self, row: LayerRow) -> None:
        bad, pair = row.passed is False, row.pair
        iterations = self._iterations.setdefault(pair, {})
        iterations[row.iteration] = iterations.get(row.iteration, True) and not bad
        self.rows += 1
        self.failed += bad
        self._compared[pair] = self._compared.get(pair, False) or not lines.skipped(row)
        self.skipped += lines.skipped(row)
        if bad and (self.first_bad is None or _place(row) < _place(self.first_bad)):
            self.first_bad = row
        if bad and row.finding != "propagated" and len(self.origins) < _ORIGINS:
            self.origins.append(row)
        if not lines.skipped(row) and (self.worst is None or _size(row) > _size(self.worst)):
            self.worst = row

    def timings(self, runners: dict[int, str]) -> Iterator[str]:
        """Inference times, a line per runner."""
        for index, seconds in self._runtimes.items():
            total = 1000 * sum(seconds)
            yield (
                f"{lines.name(runners[index]):35} | Completed {len(seconds)} iteration(s) in {total:.4g} ms | "
                f"Average inference time: {total / len(seconds):.4g} ms."
            )

    def accuracy(self, runners: dict[int, str], spec: CompareSpec, result: CompareResult) -> Iterator[tuple[bool, str]]:
        """The accuracy summary, a line per pair: (passed, text)."""
        if spec.check_average:
            yield from _averages(result)
            return
        for pair, iterations in self._iterations.items():
            good, total = sum(iterations.values()) if self._compared[pair] else 0, len(iterations)
            first, second = (lines.name(runners.get(index, index)) for index in pair)
            rate = 100 * good / total
            head = f"Accuracy Summary | {first} vs. {second} | "
            yield good == total, f"{head}Passed: {good}/{total} iterations | Pass Rate: {rate:.2f}%"


def essence(result: CompareResult, spec: CompareSpec, totals: Totals, job: object) -> Iterator[tuple[int, str]]:
    """The last lines of a layer table: how many, the first bad one, the worst, what to do next."""
    yield from _left_out(result, spec, job)
    yield from _layers(result, spec, totals, job)
    if result.truth is not None:
        yield truth_line(result.truth)
    if result.quantised is not None:
        yield from quantised_lines(result.quantised)


def quantised_lines(found: QuantisedResult) -> Iterator[tuple[int, str]]:
    """What a side's tensors in few bits come to, and those that are wrong."""
    yield ERROR if found.wrong else FINISH, quantised_text(found)
    for row in found.worst if found.wrong else ():
        if row.word:
            place = f"#{row.i} {lines.name(row.op)} {lines.name(row.node)}"
            yield ERROR, f"             {row.word} at {place}: {held_text(row)}"


def quantised_text(found: QuantisedResult) -> str:
    """A line of what a side's tensors in few bits come to."""
    return f"quantised    {shown(found.text, 1000)}"


def truth_line(found: TruthResult) -> tuple[int, str]:
    """Whether the suspect is acceptable: level and sentence."""
    level = WARNING if found.acceptable is None else FINISH if found.acceptable else ERROR
    return level, f"truth        {shown(found.text, 1000)}"


def _layers(result: CompareResult, spec: CompareSpec, totals: Totals, job: object) -> Iterator[tuple[int, str]]:
    many = bool(spec.truth or spec.marks.everything or spec.marks.names or spec.marks.op_types)
    if not many or not totals.rows:
        return
    canary = result.canary
    moved = "" if canary is None else ", canary ok" if canary.ok else f", canary: {shown(canary.text, 300)}"
    skipped = f", {totals.skipped} skipped" if totals.skipped else ""
    yield (
        ERROR if totals.failed else FINISH,
        f"layerwise run: {totals.rows} tensors compared, {totals.failed} failed{skipped}{moved}",
    )
    if totals.first_bad is not None:
        yield ERROR, f"first bad    {_row_text(totals.first_bad)}"
        yield from _source(totals.first_bad)
    for row in totals.origins:
        if row is not totals.first_bad and row is not totals.worst:
            yield ERROR, f"also         {_row_text(row)}"
    if totals.worst is not None and _size(totals.worst) > 0:
        yield INFO, f"worst        {_row_text(totals.worst)}"
    for text in _next(spec, totals, job):
        yield INFO, text


def _source(row: LayerRow) -> Iterator[tuple[int, str]]:
    """The module and the line of Python that a row's node comes from, where the exporter noted them."""
    if row.module is not UNSET and row.source is not UNSET:
        line = row.source
        where = f"{shown(line.file, 300)}:{line.line} in {shown(line.function, 100)}"
        yield INFO, f"comes from   {shown(dotted(row.module), 300)}   {where}"


def _left_out(result: CompareResult, spec: CompareSpec, job: object) -> Iterator[tuple[int, str]]:
    """How many tensors have no row; a warning where the user named them."""
    for word, items, why in (
        ("unmatched", result.unmatched, ("tensor without a counterpart", "tensors without a counterpart")),
        ("skipped", result.skipped, ("value that is no tensor", "values that are no tensors")),
    ):
        if items:
            first = shown(items[0].rpartition(": ")[0], 60)
            how = f"layerwise jobs show {job} --json" if job is not None else "--json"
            text = f"{word:<12} {len(items)} {why[len(items) > 1]}, first {first}; {how} lists them"
            yield WARNING if spec.marks.names else INFO, text


def _next(spec: CompareSpec, totals: Totals, job: object) -> Iterator[str]:
    bad = totals.first_bad
    if bad is not None and spec.model:
        closer = _closer(spec, bad)
        yield f"next         {shell_line(command_line(closer))}"
    if job is not None:
        yield (f"             layerwise attach {job}" if bad is not None else f"next         layerwise attach {job}")


def _closer(spec: CompareSpec, row: LayerRow) -> CompareSpec:
    """The comparison of one tensor alone (or of all marked, where they decide what is computed), with all statistics.

    Nothing is saved; the truth is not looked for again.
    """
    spec = msgspec.structs.replace(unsaved(spec), truth=False)
    if row.mode == "marked":
        return msgspec.structs.replace(spec, observe="marked", statistics=True)
    return msgspec.structs.replace(spec, marks=MarkSpec(names=[row.tensor], only=True), statistics=False)


def _row_text(row: LayerRow) -> str:
    node = f" {lines.name(row.node)}" if row.node else ""
    finding = f"   {row.finding}" if row.finding else ""
    errors = f"max abs {lines.number(row.max_abs)}   max rel {lines.number(row.max_rel)}"
    errors += lines.truth(row).replace(" | ", "   ")
    place = f"#{row.i} {lines.name(row.op or 'output')}{node}"
    other = f" = {lines.name(row.tensor2)}" if isinstance(row.tensor2, str) else ""
    return f"{place}   {lines.name(row.tensor)}{other}   {errors}{finding}"


def _averages(result: CompareResult) -> Iterator[tuple[bool, str]]:
    """The averages over the iterations: per pair how many outputs passed, then each metric of each output."""
    pairs: dict[tuple[str, str], dict[str, list[Average]]] = {}
    for found in result.averages or ():
        pairs.setdefault(found.pair, {}).setdefault(found.tensor, []).append(found)
    for (first, second), outputs in pairs.items():
        good = sum(all(found.passed for found in each) for each in outputs.values())
        head = f"Accuracy Summary | {lines.name(first)} vs. {lines.name(second)} | "
        yield good == len(outputs), f"{head}Passed: {good}/{len(outputs)} outputs"
        for tensor, each in outputs.items():
            for found in each:
                value = "" if found.value is None else f": {lines.number(found.value)}"
                verdict = "PASSED" if found.passed else "FAILED"
                yield found.passed, f"    {lines.name(tensor)} | {lines.label(found.metric)}{value} | {verdict}"


def _place(row: LayerRow) -> tuple[int, int]:
    return row.iteration, row.i


def _size(row: LayerRow) -> float:
    """How bad a row is: its largest absolute error, a NaN above everything."""
    value = row.max_abs
    if not isinstance(value, int | float):
        return -1.0
    return math.inf if math.isnan(value) else float(value)
