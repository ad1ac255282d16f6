"""The job action `autotune`: finds the fastest combination of replacements by plugins, and writes that model."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency, UsageError, writing
from layerwise._tool.backends.filesystem.files import write_named
from layerwise._tool.backends.jobs.journal.earlier_attempts import Stale, typed
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable
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
_TABLE = "combinations"


def autotune(context: "JobContext") -> AutotuneResult:
    """Do what `context.params` (an AutotuneSpec) says. Rows of the tables plugins and combinations.

    What an earlier attempt has timed is not timed again if model, plugins and versions are as they were.
    """
    spec = read_spec(context.params, AutotuneSpec, "which plugins to try")
    if spec.most < 1:
        raise UsageError("--max-combinations: at least 1 is needed")
    for path in filter(None, (None if spec.match_only else spec.output, spec.save_report, spec.save_config)):
        refuse_existing(Path(path), spec.overwrite)
    return context.resumed(lambda: _autotune(context, spec), [_TABLE])


def _autotune(context: "JobContext", spec: AutotuneSpec) -> AutotuneResult:
    context.log(f"Loading model: {shown(spec.model)}")
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        structure = Structure.open(file)
    matches = _matches(structure, spec, context)
    config = None if spec.load_config else spec.save_config
    if spec.match_only:
        return AutotuneResult(passed=True, config=config)
    return Autotuning(context, spec, structure, matches).run(config)


def _matches(structure: Structure, spec: AutotuneSpec, context: "JobContext") -> list[Match]:
    if spec.load_config is None:
        found = matches_in(structure, Path(spec.plugin_dir), spec.include, spec.exclude, context)
        if spec.save_config:
            write_config(Path(spec.save_config), found, context)
        return found
    found = read_config(Path(spec.load_config))
    return [m for m in found if (not spec.include or m.name in spec.include) and m.name not in spec.exclude]


@dataclass(frozen=True)
class Replacement:
    """A subgraph that a plugin can replace; label: the plugin's name and the number of the match."""

    match: Match
    instance: Instance
    label: str


def replacements_of(matches: Sequence[Match]) -> list[Replacement]:
    """Return every instance of every match, in order."""
    return [Replacement(match, instance, f"{match.name}_{number}")
            for match in matches for number, instance in enumerate(match.instances)]  # fmt: skip


def made_within(instance: Instance, makers: Mapping[str, onnx.NodeProto]) -> set[str]:
    """Return the tensors that are made between inputs and outputs of a subgraph, the outputs among them."""
    found, waiting = set[str](), list(instance.outputs)
    while waiting:
        name = waiting.pop()
        if name in makers and name not in found and name not in instance.inputs:
            found.add(name)
            waiting += makers[name].input
    return found


class Autotuning:
    """One search. Every combination is in the job's journal as soon as it is timed."""

    def __init__(
        self, context: "JobContext", spec: AutotuneSpec, structure: Structure, matches: Sequence[Match]
    ) -> None:
        self._context, self._spec, self._structure = context, spec, structure
        self._replacements = replacements_of(matches)
        self._earlier = typed(context.previous_rows(_TABLE), CombinationRow)
        self._rows: list[CombinationRow] = []
        self._cache = context.artifacts / _CACHE
        self._timer = EngineTimer(spec, self._cache, context.warn)

    def run(self, config: str | None) -> AutotuneResult:
        """Time the model and combinations, write the fastest one and the report.

        LayerwiseError if nothing can be replaced, or the model itself cannot be timed.
        """
        if not self._replacements:
            raise LayerwiseError("no plugin matches anything in the model: there is nothing to replace")
        started = time.perf_counter()
        best = self._search()
        self._cache.unlink(missing_ok=True)
        path = self._save(best.combination) if best.combination else None
        if self._spec.save_report:
            self._report(self._spec.save_report, best, time.perf_counter() - started)
        if path is None:
            self._context.warn("no replacement makes the model faster: no model is written")
        return AutotuneResult(
            passed=path is not None, path=path, config=config, report=self._spec.save_report,
            best=self._labels(best.combination), milliseconds=best.times.milliseconds,
            model_milliseconds=self._rows[0].milliseconds, tried=len(self._rows),
        )  # fmt: skip

    def _search(self) -> Best:
        spec, choices = self._spec, self._choices()
        self._total = 1 + choices.count if spec.mode == "greedy" else min(spec.most, 1 << choices.count)
        model = self._timed((), None)
        self._context.log(f"Baseline Performance (without plugin replacements): {performance(self._rows[0])}")
        if spec.mode == "greedy":
            return greedy(choices, spec.most, model, self._trial)
        return exhaustive(choices, spec.most, spec.threshold, model, self._trial)

    def _choices(self) -> Choices:
        """Two clash where an output of one is made within the other."""
        makers = {name: node for node in self._structure.nodes for name in node.output}
        within = [made_within(replacement.instance, makers) for replacement in self._replacements]
        outputs = [set(replacement.instance.outputs) for replacement in self._replacements]
        pairs = combinations(range(len(outputs)), 2)
        clashes = ((a, b) for a, b in pairs if outputs[a] & within[b] or outputs[b] & within[a])
        return Choices(len(outputs), frozenset(clashes))

    def _labels(self, combination: Combination) -> list[str]:
        return [self._replacements[at].label for at in combination]

    def _trial(self, combination: Combination, best: Best) -> Times | None:
        try:
            times = self._timed(combination, best)
        except MissingDependency:
            raise
        except LayerwiseError as error:
            told = shown(", ".join(self._labels(combination)), 500)
            self._context.warn(f"{told}: cannot be timed: {error}")
            return None
        row = self._rows[-1]
        verdict = "faster than all before" if row.best else "not faster"
        self._context.log(f"{shown(', '.join(row.replacements), 500)}: {performance(row)}: {verdict}")
        return times

    def _timed(self, combination: Combination, best: Best | None) -> Times:
        """Time a combination, or take its row of an earlier attempt. LayerwiseError if it cannot be timed."""
        row = CombinationRow(n=len(self._rows), replacements=self._labels(combination))
        try:
            self._refuse_crashed(row)
            data = self._replaced(combination).proto().SerializeToString()
            row.content = hashlib.sha256(data).hexdigest()
            times = self._known(row) or self._timer.time(Loadable(data=data, folder=self._structure.folder))
        except LayerwiseError as error:
            row.note = str(error)
            self._add(row)
            raise
        row.milliseconds, row.memory, row.build_seconds = times.milliseconds, times.memory, times.build_seconds
        row.best = best is None or times < best.times
        self._add(row)
        return times

    def _refuse_crashed(self, row: CombinationRow) -> None:
        """LayerwiseError if an earlier attempt ended in native code at this place."""
        crash = self._context.earlier.crash if row.n and row.n == len(self._earlier) else ""
        if crash and not any(crash in known.note for known in self._earlier):
            raise LayerwiseError(f"it brought the worker down: {crash}")

    def _known(self, row: CombinationRow) -> Times | None:
        """Return the times that an earlier attempt has. Stale if it tried something else in this place."""
        if row.n >= len(self._earlier):
            return None
        known = self._earlier[row.n]
        if (known.replacements, known.content) != (row.replacements, row.content):
            raise Stale("what the plugins match or put in is something else than before")
        if known.milliseconds is None:
            raise LayerwiseError(known.note)
        return Times(known.milliseconds, known.memory or 0, known.build_seconds)

    def _add(self, row: CombinationRow) -> None:
        self._rows.append(row)
        if row.n >= len(self._earlier):
            self._context.row(_TABLE, row)
        self._context.progress(len(self._rows), max(self._total, len(self._rows)), "combinations")

    def _replaced(self, combination: Combination) -> Structure:
        """Return the model with these replacements. LayerwiseError if a plugin declines one."""
        if not combination:
            return self._structure
        chosen: dict[tuple[str, str], Match] = {}
        for replacement in (self._replacements[at] for at in combination):
            match = replacement.match
            before = chosen.get((match.folder, match.op), replace(match, instances=())).instances
            chosen[match.folder, match.op] = replace(match, instances=(*before, replacement.instance))

        def done(match: Match, count: int) -> None:
            if count != len(match.instances):
                raise LayerwiseError(f"plugin {shown(match.name, 80)} declines to replace a subgraph that it matched")

        return replace_matches(self._structure, Path(self._spec.plugin_dir), chosen.values(), done)

    def _save(self, combination: Combination) -> str:
        spec = self._spec
        save_as(self._replaced(combination), Path(spec.output), spec.model_options, overwrite=spec.overwrite)
        self._context.log(f"Optimized model saved to: {shown(spec.output)}")
        return spec.output

    def _report(self, path: str, best: Best, seconds: float) -> None:
        chosen = [(self._replacements[at].match, self._replacements[at].instance) for at in best.combination]
        with writing(shown(path)):
            write_named(Path(path), report_text(self._rows, chosen, seconds))
        self._context.log(f"Optimization report saved to: {shown(path)}")
