"""Saved outputs as a side of a comparison: a runner that only reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from layerwise._tool.backends.dumps.dump import Dump
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.runner import Loadable, RunnerBase, check_names
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown


class SavedRunner(RunnerBase):
    """Returns the stored outputs of one iteration after the other, ignoring the feed.

    Arrays are read from the file on access.
    """

    def __init__(
        self, spec: RunnerSpec, iterations: Sequence[IterationResult], name: str, dump: Dump | None = None
    ) -> None:
        """dump: what the iterations are of; by default of nothing but themselves."""
        self.spec = spec
        self.dump = dump or Dump(RunResults([(name, list(iterations))]))
        self.name = name
        self.inputs: list[TensorInfo] = []
        self.iterations = list(iterations)
        self.outputs = list(self.iterations[0].outputs)
        self._next = 0

    def infer(self, feed: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> IterationResult:
        """Return the next iteration. UsageError if there is none, or if it lacks one of `outputs`."""
        self._next += 1
        return self.result(self._next - 1, outputs)

    def result(self, iteration: int, outputs: Sequence[str] | None = None) -> IterationResult:
        """Return iteration `iteration` (from 0). UsageError as in `infer`."""
        if not 0 <= iteration < len(self.iterations):
            count = len(self.iterations)
            raise UsageError(
                f"{shown(self.spec.results or self.name)} holds {count} iteration{'s' * (count != 1)}, "
                f"number {iteration + 1} was asked for: lower --iterations"
            )
        stored = self.iterations[iteration]
        found = stored.outputs
        if outputs is not None:
            check_names({}, (), outputs, found)
            found = {name: found[name] for name in outputs}
        return IterationResult(found, stored.runtime, self.name, stored.observed)


def open_saved(spec: RunnerSpec, model: Loadable | None = None, *, name: str = "") -> SavedRunner:
    """Open the saved outputs that `spec.results` names (a file, a folder, an archive); no model is necessary.

    The default name is that of the saved runner. UsageError if there is no runner
    `spec.results_index`; BadFile if it is not a results file, or has no iteration of it.
    """
    if not spec.results:
        raise UsageError("a saved side needs the path of its results (--load-outputs)")
    from layerwise._tool.backends.dumps.opening import open_results  # what reads files: most sides run

    dump = open_results(spec.results, spec.dump)
    results = dump.results
    names = results.keys()
    if not 0 <= spec.results_index < len(results):
        there = ", ".join(shown(key, 80) for key in names) or "none"
        raise UsageError(f"{shown(spec.results)} has no runner number {spec.results_index}; there are: {there}")
    iterations = results[spec.results_index]
    if not iterations:
        raise BadFile(Path(spec.results), "holds no iteration of this runner")
    return SavedRunner(spec, iterations, name or spec.name or names[spec.results_index], dump)


def every_saved(spec: RunnerSpec) -> list[RunnerSpec]:
    """Return one spec per runner in the file if `results_index` is -1; any other spec unchanged."""
    if spec.kind != "saved" or spec.results_index != -1 or not spec.results:
        return [spec]
    from layerwise._tool.backends.dumps.opening import another_programs, open_results

    if another_programs(Path(spec.results)):
        return [msgspec.structs.replace(spec, results_index=0)]
    count = len(open_results(spec.results, spec.dump).results)
    if not count:
        raise BadFile(Path(spec.results), "holds no runner")
    return [msgspec.structs.replace(spec, results_index=index) for index in range(count)]
