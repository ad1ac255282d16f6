"""Runs a bench: opens subjects, times them alternately, profiles, compares, writes results."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.bench.loop import BenchPlan, Measured, Tick, measure
from layerwise._tool.backends.bench.timed import Timed, TimedSubject
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.plan_text import explained, pinning
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.conclusion import conclusion
from layerwise._tool.debugtools.bench.exports import (
    Run,
    output_text,
    profile_text,
    read_latencies,
    report_text,
    times_text,
    write,
)
from layerwise._tool.debugtools.bench.profile_child import Origins, layer_information, profile, profile_rows, read_graph
from layerwise._tool.debugtools.bench.rows import BenchResult, ComparisonRow, ProfileRow, RunRow
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.bench.statistics import compare, statistics
from layerwise._tool.debugtools.bench.subjects import describe, feed_for, labels, open_bench, plan_feeds

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


ROUNDS = 5
_SHORT_WARM_UP = 0.02
_MOST_LINES = 20


def average_lines(latencies: Sequence[float], runs: int) -> Iterator[str]:
    """Return trtexec's `Average on N runs` lines, a selection if there are very many; none for N = 0."""
    for at in range(0, min(len(latencies), _MOST_LINES * runs) - runs + 1, runs or 1) if runs else ():
        part = latencies[at : at + runs]
        yield f"Average on {runs} runs - Host latency: {sum(part) / runs:g} ms"


class BenchRun:
    """Runs the spec; reports every run to the job's journal as soon as it is measured."""

    def __init__(self, context: "JobContext", spec: BenchSpec) -> None:
        self.context, self.spec = context, spec
        if not spec.runners:
            raise UsageError("there is nothing to time: name a runner, such as --onnxrt")
        self.names = labels(spec.runners)
        self.runs: list[Run] = []
        self.comparisons: list[ComparisonRow] = []
        self.opening: dict[str, float] = {}
        self._said: set[str] = set()

    def run(self) -> BenchResult:
        """Run everything; return the result."""
        self.spec = plan_feeds(self.spec, self.context)
        saved = Path(self.spec.against) if self.spec.against else None
        against = {batch: read_latencies(saved, batch) for batch in self._batches()} if saved else {}
        for batch in self._batches():
            self._one_batch(batch)
            if not self.spec.skip_inference:
                self._compare(batch, against.get(batch))
        layers = Profiling(self.context, self.spec, self.names).run(self._batches()[-1]) if self._profiles() else []
        return self._finish(layers)

    def _batches(self) -> list[int | None]:
        return list(self.spec.batches) or [None]

    def _profiles(self) -> bool:
        wanted = self.spec.profile or self.spec.layers or self.spec.exports.profile or self.spec.exports.layers
        return bool(wanted) and not self.spec.skip_inference

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.context.warn(text)

    # ── timing ──

    def _one_batch(self, batch: int | None) -> None:
        with ExitStack() as stack:
            subjects = []
            for number, name in enumerate(self.names):
                started = time.perf_counter()
                subject = open_bench(self.spec, self.spec.runners[number], name)
                stack.enter_context(closing(subject))
                self.opening.setdefault(name, time.perf_counter() - started)
                subjects.append(subject)
            if not self.spec.skip_inference:
                self._measure(subjects, batch)

    def _measure(self, subjects: Sequence[TimedSubject], batch: int | None) -> None:
        streams: list[Sequence[Timed]] = []
        for subject in subjects:
            feed = feed_for(self.spec, subject.inputs, batch, self._warn)
            streams.append(subject.streams(feed, self.spec.plan.streams))
            for note in subject.notes():
                self._warn(note)
        with explained(pinning(self.spec.feeds.plan)):
            measured = self._in_turns(streams, batch)
        for number, found in enumerate(measured):
            self._take(number, batch, found, streams[number])
        if self.spec.exports.output:
            write(self.spec.exports.output, output_text(streams[0][0].outputs()))

    def _in_turns(self, streams: Sequence[Sequence[Timed]], batch: int | None) -> list[Measured]:
        """Alternate between runners, so that disturbances of the machine affect all of them alike."""
        rounds = ROUNDS if len(streams) > 1 else 1
        parts = rounds * len(streams)
        found: list[Measured] = []
        for part in range(parts):
            turn, number = divmod(part, len(streams))
            measured = measure(streams[number], self._plan(rounds, turn), self._tick(number, batch, part, parts))
            if turn:
                found[number].add(measured)
            else:
                found.append(measured)
        return found

    def _plan(self, rounds: int, turn: int) -> BenchPlan:
        plan = self.spec.plan
        warm_up, runs = (plan.warm_up, plan.warm_up_runs) if turn == 0 else (min(_SHORT_WARM_UP, plan.warm_up), 1)
        return BenchPlan(warm_up, runs, plan.duration / rounds, -(-plan.iterations // rounds), plan.idle)

    def _tick(self, number: int, batch: int | None, part: int, parts: int) -> Tick:
        name = self.names[number] + (f", batch {batch}" if batch is not None else "")

        def tick(fraction: float, runs: int) -> None:
            self.context.progress(round((part + fraction) / parts * 100), 100, "%", f"{name}: {runs} runs")

        return tick

    def _take(self, number: int, batch: int | None, found: Measured, streams: Sequence[Timed]) -> None:
        timings, phases = found.timings(), streams[0].phases
        percents = self.spec.percentiles
        latencies = [(timing[1] - timing[0]) * 1000 for timing in timings]
        row = RunRow(
            runner=self.names[number], batch=batch, streams=len(streams), runs=found.runs, seconds=found.seconds,
            warm_ups=found.warm_ups, qps=found.runs / found.seconds,
            items_per_second=found.runs * (batch or 1) / found.seconds, latency=statistics(latencies, percents),
            phases={
                name: statistics([timing[2 + place] * 1000 for timing in timings], percents)
                for place, name in enumerate(phases)
            },
        )  # fmt: skip
        if found.cut:
            self._warn(f"{self.names[number]}: ended after {found.runs} runs, the most that are kept")
        for line in average_lines(latencies, self.spec.average_runs):
            self.context.log(line, "verbose")
        self.runs.append(Run(row, timings, phases))
        self.context.row("runs", row)

    # ── what comes of it ──

    def _compare(self, batch: int | None, against: tuple[str, list[float]] | None) -> None:
        """Compare each runner with the last one, and all of them with saved results."""
        runs = self.runs[-len(self.names) :]
        pairs = [(run, runs[-1].row.runner, runs[-1].latencies) for run in runs[:-1]]
        pairs += [(run, *against) for run in runs] if against is not None else []
        for run, reference, latencies in pairs:
            row = compare(run.latencies, latencies).row(run.row.runner, reference, batch)
            self.comparisons.append(row)
            self.context.row("comparisons", row)

    def _finish(self, layers: list[ProfileRow]) -> BenchResult:
        measured_on = describe(self.spec, self.spec.runners[0])
        result = BenchResult(
            runs=[run.row for run in self.runs], comparisons=self.comparisons, opening_seconds=self.opening,
            measured_on=measured_on,
        )  # fmt: skip
        result.conclusion = conclusion(result, layers, self._profiles())
        exports = self.spec.exports
        if self.runs and exports.times:
            write(exports.times, times_text(exports.times, self.runs[0]))
        if exports.report:
            write(exports.report, report_text(exports.report, result, self.runs, layers))
        return result


class Profiling:
    """Writes the rows of the table profile, and the requested files, for the first runner that has layers."""

    def __init__(self, context: "JobContext", spec: BenchSpec, names: list[str]) -> None:
        self._context, self._spec, self._names = context, spec, names
        self._rows: list[ProfileRow] = []

    def run(self, batch: int | None) -> list[ProfileRow]:
        """Profile every runner at a batch size; return the rows. Warns of runners that cannot be profiled."""
        for number, name in enumerate(self._names):
            self._context.progress(number, len(self._names), "profiles", name)
            try:
                self._profile(number, name, batch)
            except LayerwiseError as error:
                self._context.warn(f"{shown(name, 120)}: {error}")
        return self._rows

    def _profile(self, number: int, name: str, batch: int | None) -> None:
        folder = self._context.artifacts / f"profile-{number}"
        found = profile(self._spec, number, batch, folder)
        executed, origins = read_graph(found.graph), Origins(self._model(number))
        rows = profile_rows(name, batch, found.layers, executed, origins)
        exports = self._spec.exports
        if not self._rows and exports.profile:
            write(exports.profile, profile_text(exports.profile, rows, len(found.layers[0].runs_ms)))
        info = found.information or (layer_information(executed, origins) if executed is not None else None)
        if not self._rows and info is not None:
            for path in filter(None, (exports.layers, str(self._context.artifacts / "layers.json"))):
                write(path, info)
        for row in rows:
            self._context.row("profile", row)
        self._rows += rows
        self._tidy(folder)

    def _model(self, number: int) -> Any:
        spec, options = self._spec, self._spec.model_options
        path = spec.runners[number].model or spec.model
        if Path(path).suffix.lower() != ".onnx" and spec.runners[number].kind == "trt":
            return None
        with ModelFile(path, options.external_data_dir, options.ignore_external_data) as file:
            return file.structure()

    def _tidy(self, folder: Path) -> None:
        """Remove the copy of the model's weights that was written with the graph."""
        for path in folder.glob("*.weights"):
            path.unlink()


def bench(context: "JobContext") -> "BenchResult":
    """Time what `context.params` describes (a BenchSpec). Rows of the tables runs, profile and comparisons."""
    spec = read_spec(context.params, BenchSpec, "what to time")

    return BenchRun(context, spec).run()
