"""The mixed model as it runs here: the proof of a choice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.onnxrt.saturation import SETTING, may_saturate, precise
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import QUANTISED_AS_WRITTEN, RunnerSpec
from layerwise._tool.debugtools.search.lens.errors import Errors, finite
from layerwise._tool.debugtools.search.lens.judging import Judging
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.sets import NOISE, WITHIN
from layerwise._tool.debugtools.search.lens.writing import is_real, mixed_model
from layerwise._tool.surgery.model.structure import Structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class Proof:
    """What the mixed model does as it is run. ratio: how often the bound is reached; not_real: why it could only be run
    with nodes in FP32 that round ("": it was run as it is). needs: what onnxruntime has to be told to load it or, where
    its kernels saturate on this CPU, to run it; saturated: the error without that then.
    """

    def __init__(
        self, structure: Structure, errors: Errors, ratio: float, not_real: str, needs: str = "",
        saturated: float | None = None,
    ) -> None:  # fmt: skip
        self.structure, self.errors, self.ratio, self.not_real, self.needs = structure, errors, ratio, not_real, needs
        self.saturated = saturated


class Proving:
    """runner: runs the mixed models."""

    def __init__(self, context: "JobContext", lens: Lens, runner: RunnerSpec, judging: Judging) -> None:
        self._context, self._lens, self._runner, self._judging = context, lens, runner, judging
        self._warned = False

    def proof(self, low: Sequence[int], error: float | None = None) -> Proof:
        """The mixed model with these candidates low, run on all inputs. error: what the set comes to on the
        switchboard, None if it was not measured there.
        """
        structure = mixed_model(self._lens, low, self._context)
        note = "" if is_real(self._lens) else f"ONNX has no operators for {self._lens.form.name}"
        for spec, needs in self._ways():
            try:
                proof = Proof(structure, *self._judging.judged(self._outputs(structure, spec)), note, needs)
            except LayerwiseError as failed:
                why = str(failed)
            else:
                return self._unsaturated(proof, spec, error)
        if not self._warned:
            self._context.warn(f"the mixed model does not run here, only with FP32 nodes that round: {why}")
        self._warned = True
        emulated = mixed_model(self._lens, low, emulate=True)
        return Proof(structure, *self._judging.judged(self._outputs(emulated, self._runner)), note or why)

    def _unsaturated(self, proof: Proof, spec: RunnerSpec, error: float | None) -> Proof:
        """The proof, by kernels that do not saturate where those of this CPU do and it is beyond the bound, or further
        off than on the switchboard (`error`) and closer with them. Not if the user says which kernels are to be used.
        """
        if SETTING in spec.session_settings:
            return proof
        plain = proof.errors.worst
        off = proof.ratio > 1 or error is None or plain > (1 + WITHIN) * error + NOISE
        if not off or self._lens.form.kind != "integer" or not may_saturate(spec):
            return proof
        try:
            found = Proof(proof.structure, *self._judging.judged(self._outputs(proof.structure, precise(spec))),
                          proof.not_real, f"{SETTING}=1", saturated=finite(plain))  # fmt: skip
        except LayerwiseError:
            return proof
        closer = found.errors.worst < plain / (1 + WITHIN)
        return found if closer and found.ratio <= max(1.0, proof.ratio) else proof

    def _ways(self) -> list[tuple[RunnerSpec, str]]:
        """How the mixed model may be run, and what whoever loads it in onnxruntime has to set for that."""
        runner = self._runner
        ways = [(runner, ""), (replace(runner, graph_optimization_level="disable"), "no optimisation")]
        free = runner.kind == "onnxrt" and QUANTISED_AS_WRITTEN not in runner.session_settings
        if self._lens.form.kind == "float8" and free:
            ways[:1] = [(runner.setting(QUANTISED_AS_WRITTEN, "0"), ""), (runner, f"{QUANTISED_AS_WRITTEN}=1")]
        return ways

    def _outputs(self, structure: Structure, spec: RunnerSpec) -> list[dict[str, Array]]:
        model = Loadable(data=structure.proto().SerializeToString(), folder=self._lens.model.file.folder)
        with open_runner(replace(spec, model=None), model, name="mixed") as runner:
            return [dict(runner.infer(feed).outputs) for feed in self._lens.feeds]
