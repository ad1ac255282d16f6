"""The mixed model as it runs here: the proof of a choice."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import QUANTISED_AS_WRITTEN, WITHOUT_OVERFLOW, RunnerSpec
from layerwise._tool.debugtools.search.lens.errors import Errors, finite
from layerwise._tool.debugtools.search.lens.judging import Judging
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.writing import is_real, mixed_model
from layerwise._tool.surgery.model.structure import Structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

LOST = 1.15
"""Times what its set is off by on the switchboard, from which on a mixed model's kernels lose more than its format."""


class Proof:
    """What the mixed model does as it is run. ratio: how often the bound is reached; not_real: why it could only be run
    with nodes in FP32 that round ("": it was run as it is). needs: what onnxruntime has to be told to load it, or for
    its integers not to overflow; lost: what it was off by without that.
    """

    def __init__(
        self, structure: Structure, errors: Errors, ratio: float, not_real: str, needs: str = "",
        lost: float | None = None,
    ) -> None:  # fmt: skip
        self.structure, self.errors, self.ratio = structure, errors, ratio
        self.not_real, self.needs, self.lost = not_real, needs, lost


class Proving:
    """runner: runs the mixed models. bound: its value, inf: none was given."""

    def __init__(self, context: "JobContext", lens: Lens, runner: RunnerSpec, judging: Judging, bound: float) -> None:
        self._context, self._lens, self._runner, self._judging = context, lens, runner, judging
        self._bound = bound
        self._warned = False

    def proof(self, low: Sequence[int], expected: float) -> Proof:
        """The mixed model with these candidates low, run on all inputs; where its integers overflow, so that they do
        not. expected: what the set is off by on the switchboard.
        """
        found = self._as_it_is(low)
        worse = found.errors.worst > LOST * expected and (found.ratio > 1 or not math.isfinite(self._bound))
        if not worse or self._lens.form.kind != "integer" or self._runner.kind != "onnxrt" or found.not_real:
            return found
        config = {WITHOUT_OVERFLOW: "1", **self._runner.options.get("session_config", {})}
        wide = replace(self._runner, options={**self._runner.options, "session_config": config, "log_severity": 4})
        try:
            errors, ratio = self._judging.judged(self._outputs(found.structure, wide))
        except LayerwiseError:  # onnxruntime 1.31 fails so on two products that share a weight
            return found
        if errors.worst > LOST * expected:
            return found
        return Proof(found.structure, errors, ratio, "", f"{WITHOUT_OVERFLOW}=1", finite(found.errors.worst))

    def _as_it_is(self, low: Sequence[int]) -> Proof:
        structure = mixed_model(self._lens, low, self._context)
        note = "" if is_real(self._lens) else f"ONNX has no operators for {self._lens.form.name}"
        for spec, needs in self._ways():
            try:
                return Proof(structure, *self._judging.judged(self._outputs(structure, spec)), note, needs)
            except LayerwiseError as error:
                why = str(error)
        if not self._warned:
            self._context.warn(f"the mixed model does not run here, only with FP32 nodes that round: {why}")
        self._warned = True
        emulated = mixed_model(self._lens, low, emulate=True)
        return Proof(structure, *self._judging.judged(self._outputs(emulated, self._runner)), note or why)

    def _ways(self) -> list[tuple[RunnerSpec, str]]:
        """How the mixed model may be run, and what whoever loads it in onnxruntime has to set for that."""
        runner = self._runner
        ways = [(runner, ""), (replace(runner, graph_optimization_level="disable"), "no optimisation")]
        config = runner.options.get("session_config", {})
        if self._lens.form.kind == "float8" and runner.kind == "onnxrt" and QUANTISED_AS_WRITTEN not in config:
            fused = {**runner.options, "session_config": {**config, QUANTISED_AS_WRITTEN: "0"}}
            ways[:1] = [(replace(runner, options=fused), ""), (runner, f"{QUANTISED_AS_WRITTEN}=1")]
        return ways

    def _outputs(self, structure: Structure, spec: RunnerSpec) -> list[dict[str, Array]]:
        model = Loadable(data=structure.proto().SerializeToString(), folder=self._lens.model.file.folder)
        with open_runner(replace(spec, model=None), model, name="mixed") as runner:
            return [dict(runner.infer(feed).outputs) for feed in self._lens.feeds]
