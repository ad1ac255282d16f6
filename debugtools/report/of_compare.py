"""A comparison as sections: runs, the layers of each pair, what was not compared."""

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from layerwise._tool.debugtools.compare.pairing.left_out import why_not
from layerwise._tool.debugtools.compare.result import Average, CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow, NotCompared, Pair, RunRow, ValidateRow
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.figures import error_text, errors, known, lasting, origin, place
from layerwise._tool.debugtools.report.structure import Case, Section, Table


class ComparePart:
    """What a job `compare` collected, in sections and tables."""

    def __init__(self, collected: Collected) -> None:
        self.result = collected.result_as(CompareResult)
        self._rows = collected.rows("layers", LayerRow)
        self._runs = collected.rows("runs", RunRow)
        self._invalid = collected.rows("validate", ValidateRow)
        names = dict(enumerate(self.result.runners if self.result else []))
        told = {**{run.index: run.runner for run in self._runs}, **names}
        self._runners = {index: lasting(name) for index, name in told.items()}

    @property
    def averages(self) -> list[Average] | None:
        """Those that decide, None where each iteration does."""
        found = self.result.averages if self.result else UNSET
        return None if found is UNSET else found

    def sections(self) -> list[Section]:
        """Runs, then what was judged, then what was not."""
        found = [Section("runs", list(run_cases(self._runs)))]
        if self.averages is None:
            found += [Section(self._title(pair), cases) for pair, cases in self._pairs().items()]
        else:
            found.append(Section("averages over the iterations", list(map(_average, self.averages))))
        found += [Section("values", list(self._values())), Section("not compared", list(self._left_out()))]
        return [section for section in found if section.cases]

    def tables(self) -> list[Table]:
        """The rows of iterations that averages decide over."""
        if self.averages is None or not self._rows:
            return []
        columns = ["iteration", "tensor", "max abs", "max rel", "within"]
        rows = [[row.iteration, row.tensor, errors(row).get("max abs"), errors(row).get("max rel"), row.passed]
                for row in self._rows]  # fmt: skip
        return [Table("each iteration", columns, rows)]

    def facts(self) -> dict[str, str]:
        """What makes the verdict more or less sure."""
        found: dict[str, str] = {}
        if self.result and self.result.canary is not None and not self.result.canary.ok:
            found["canary"] = self.result.canary.text
        if self.result and self.result.truth is not None:
            found["truth"] = self.result.truth.text
        return found

    def _title(self, pair: Pair) -> str:
        first, second = (self._runners.get(index, f"runner {index}") for index in pair)
        return f"{first} vs. {second}"

    def _pairs(self) -> dict[Pair, list[Case]]:
        found: dict[Pair, list[Case]] = {}
        many = len({row.iteration for row in self._rows}) > 1
        begun: set[tuple[int, Pair]] = set()  # where a layer before is wrong by itself
        for row in self._rows:
            key = row.iteration, row.pair
            case = layer_case(row, many=many)
            if case.outcome == "failed" and row.finding != "propagated":
                begun.add(key)
            elif case.outcome == "failed" and key in begun:
                case = replace(case, severity="warning")
            found.setdefault(row.pair, []).append(case)
        return found

    def _values(self) -> Iterator[Case]:
        for row in self._invalid:
            told = f"{row.nan} NaN and {row.inf} infinite elements"
            name = f"{row.tensor} of {lasting(row.runner)}, iteration {row.iteration}"
            yield Case(name=name, outcome="failed", message=told, rule="compare/not-finite", tensor=row.tensor)
        if not self._invalid and self.result and self.result.valid is True:
            yield Case(name="all values are finite", outcome="passed")

    def _left_out(self) -> Iterator[Case]:
        if self.result is None:
            return
        for number, text in enumerate(self.result.nothing_compared):
            yield Case(name=f"pair {number}", outcome="error", message=text, rule="compare/nothing-compared")
        told = {(row.pair, row.tensor) for row in self._rows}
        seen: set[str] = set()
        for item in self.result.not_compared:
            if item.pair is None or (item.pair, item.tensor) not in told:
                seen.add(item.tensor)
                yield self._not_compared(item)
        for text in [*self.result.skipped, *self.result.unmatched]:
            name, _, why = text.rpartition(": ")
            if name not in seen:
                yield Case(name=name or text, outcome="skipped", message=why or text, rule="compare/not-compared")

    def _not_compared(self, item: NotCompared) -> Case:
        of = f" of {self._title(item.pair)}" if item.pair else ""
        name = f"{item.tensor or 'whole iterations'}{of} ({item.reason})"
        times = f" ({item.times} iterations)" if item.times > 1 else ""
        return Case(name=name, outcome="skipped", message=f"{item.text}{times}", rule="compare/not-compared",
                    tensor=item.tensor)  # fmt: skip


def run_cases(runs: Sequence[RunRow]) -> Iterator[Case]:
    """A case for each runner that ran."""
    for index in dict.fromkeys(run.index for run in runs):
        own = [run for run in runs if run.index == index]
        seconds = [run.runtime for run in own if run.runtime is not None]
        figures = known({"iterations": len(own), "outputs": len(own[0].outputs)})
        name, total = f"{index}: {lasting(own[0].runner)}", sum(seconds) if seconds else None
        yield Case(name=name, outcome="passed", seconds=total, figures=figures)


def layer_case(row: LayerRow, *, many: bool) -> Case:
    """A row of the layer table. many: there are several iterations."""
    left = why_not(row)
    name = place(row.i, row.op, row.node or row.tensor)
    name = f"{name}: {row.tensor}" if row.node else name
    what = {"i": row.i, "node": row.node, "op": row.op, "tensor": row.tensor, **origin(row)}
    figures = {**errors(row), **known({"finding": row.finding})}
    name = f"{name}, iteration {row.iteration}" if many else name
    if row.passed is False:
        rule = f"compare/{row.finding or 'differs'}"
        shape = f"{', '.join(dict.fromkeys(row.dtype))} {list(row.shape)}"
        return Case(
            name=name, outcome="failed", message=error_text(row), detail=shape, rule=rule, figures=figures, **what
        )
    if left is not None:
        return Case(name=name, outcome="skipped", message=left[1] or left[0], rule="compare/not-compared", **what)
    return Case(name=name, outcome="passed", figures=figures, **what)


def _average(found: Average) -> Case:
    name = f"{found.tensor}: {found.metric} of {' vs. '.join(map(lasting, found.pair))}"
    told = "" if found.passed else "the average over the iterations is beyond the tolerance"
    return Case(name=name, outcome="passed" if found.passed else "failed", message=told, rule="compare/average",
                tensor=found.tensor, figures=known({"average": found.value}))  # fmt: skip
