"""The job action `autotune`: finds the fastest combination of replacements by plugins, and writes that model."""

import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError, writing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.autotune.report import performance, report_text
from layerwise._tool.debugtools.autotune.rows import AutotuneResult, CombinationRow
from layerwise._tool.debugtools.autotune.spec import AutotuneSpec
from layerwise._tool.debugtools.autotune.strategies import Best, Choices, Combination, Times, exhaustive, greedy
from layerwise._tool.debugtools.autotune.timing import EngineTimer
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.plugins.action import matches_in, read_config, refuse_existing, write_config
from layerwise._tool.surgery.plugins.patterns import Instance, Match, replace_matches
from layerwise._tool.surgery.saving.model import save_as

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_CACHE = "timing.cache"
Replacement = tuple[Match, Instance]


def autotune(context: "JobContext") -> AutotuneResult:
    """Do what `context.params` (an AutotuneSpec) says. Rows of the tables plugins and combinations."""
    spec = read_spec(context.params, AutotuneSpec, "which plugins to try")
    if spec.most < 1:
        raise UsageError("--max-combinations: at least 1 is needed")
    for path in filter(None, (None if spec.match_only else spec.output, spec.report, spec.save_config)):
        refuse_existing(Path(path), spec.overwrite)
    context.log(f"Loading model: {shown(spec.model)}")
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        structure = Structure.open(file)
    matches = _matches(structure, spec, context)
    result = AutotuneResult(passed=True, config=None if spec.load_config else spec.save_config)
    if not spec.match_only:
        Autotuning(context, spec, structure, matches).run(result)
    return result


def _matches(structure: Structure, spec: AutotuneSpec, context: "JobContext") -> list[Match]:
    if spec.load_config is None:
        found = matches_in(structure, Path(spec.plugins), spec.include, spec.exclude, context)
        if spec.save_config:
            write_config(Path(spec.save_config), found, context)
        return found
    found = read_config(Path(spec.load_config))
    return [m for m in found if (not spec.include or m.name in spec.include) and m.name not in spec.exclude]


class Autotuning:
    """One search. Every combination is in the job's journal as soon as it is timed."""

    def __init__(
        self, context: "JobContext", spec: AutotuneSpec, structure: Structure, matches: Sequence[Match]
    ) -> None:
        self._context, self._spec, self._structure = context, spec, structure
        self._matches = [(match, number, instance) for match in matches
                         for number, instance in enumerate(match.instances)]  # fmt: skip
        self._rows: list[CombinationRow] = []
        self._cache = context.artifacts / _CACHE
        self._timer = EngineTimer(spec, self._cache, context.warn)

    def run(self, result: AutotuneResult) -> None:
        """Time the model and combinations, write the fastest one and the report; fill in the result.

        LayerwiseError if nothing can be replaced, or the model itself cannot be timed.
        """
        if not self._matches:
            raise LayerwiseError("no plugin matches anything in the model: there is nothing to replace")
        started = time.perf_counter()
        best = self._search()
        self._cache.unlink(missing_ok=True)
        result.model_milliseconds, result.milliseconds = self._rows[0].milliseconds, best.times.milliseconds
        result.best, result.tried = self._labels(best.combination), len(self._rows)
        result.passed = bool(best.combination)
        if best.combination:
            self._save(best.combination)
            result.path = self._spec.output
        if self._spec.report:
            chosen = [(self._matches[at][0], self._matches[at][2]) for at in best.combination]
            with writing(shown(self._spec.report)):
                atomic_write(Path(self._spec.report), report_text(self._rows, chosen, time.perf_counter() - started))
            self._context.log(f"Optimization report saved to: {shown(self._spec.report)}")
            result.report = self._spec.report
        if not best.combination:
            self._context.warn("no replacement makes the model faster: no model is written")

    def _search(self) -> Best:
        spec, choices = self._spec, self._choices()
        self._total = 1 + choices.count if spec.mode == "greedy" else min(spec.most, 1 << choices.count)
        model = self._timer.time(self._structure)
        self._add((), model, best=True)
        self._context.log(f"Baseline Performance (without plugin replacements): {performance(self._rows[0])}")
        if spec.mode == "greedy":
            return greedy(choices, spec.most, model, self._trial)
        return exhaustive(choices, spec.most, spec.threshold, model, self._trial)

    def _choices(self) -> Choices:
        """What makes the same tensor replaces the same node."""
        outputs = [set(instance.outputs) for _, _, instance in self._matches]
        pairs = combinations(range(len(outputs)), 2)
        return Choices(len(outputs), frozenset(pair for pair in pairs if outputs[pair[0]] & outputs[pair[1]]))

    def _labels(self, combination: Combination) -> list[str]:
        return [f"{self._matches[at][0].name}_{self._matches[at][1]}" for at in combination]

    def _trial(self, combination: Combination, best: Best) -> Times | None:
        try:
            times = self._timer.time(self._replaced(combination))
        except MissingDependency:
            raise
        except LayerwiseError as error:
            self._add(combination, None, note=str(error))
            self._context.warn(f"{', '.join(self._labels(combination))}: cannot be timed: {error}")
            return None
        row = self._add(combination, times, best=times < best.times)
        verdict = "faster than all before" if row.best else "not faster"
        self._context.log(f"{shown(', '.join(row.replacements), 500)}: {performance(row)}: {verdict}")
        return times

    def _replaced(self, combination: Combination) -> Structure:
        """Return the model with these replacements. LayerwiseError if a plugin declines one."""
        chosen: dict[str, Match] = {}
        for match, _, instance in (self._matches[at] for at in combination):
            before = chosen[match.folder].instances if match.folder in chosen else ()
            chosen[match.folder] = Match(match.folder, match.name, match.op, (*before, instance))

        def done(match: Match, count: int) -> None:
            if count != len(match.instances):
                raise LayerwiseError(f"plugin {shown(match.name, 80)} declines to replace a subgraph that it matched")

        return replace_matches(self._structure, Path(self._spec.plugins), chosen.values(), done)

    def _add(
        self, combination: Combination, times: Times | None, *, best: bool = False, note: str = ""
    ) -> CombinationRow:
        row = CombinationRow(
            n=len(self._rows), replacements=self._labels(combination), best=best, note=note,
            milliseconds=times.milliseconds if times else None, memory=times.memory if times else None,
            build_seconds=times.build_seconds if times else 0.0,
        )  # fmt: skip
        self._rows.append(row)
        self._context.row("combinations", row)
        self._context.progress(len(self._rows), max(self._total, len(self._rows)), "combinations")
        return row

    def _save(self, combination: Combination) -> None:
        spec = self._spec
        save_as(self._replaced(combination), Path(spec.output), spec.model_options, overwrite=spec.overwrite)
        self._context.log(f"Optimized model saved to: {shown(spec.output)}")
