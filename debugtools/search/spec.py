"""What to search for and who judges, as plain values."""

from typing import Literal

import msgspec

from layerwise._tool.backends.specs import RunnerSpec, Spec
from layerwise._tool.backends.trt.options import TrtOptions, trt_options
from layerwise._tool.debugtools.compare.spec import CompareSpec

Mode = Literal["bisect", "linear", "ddmin"]


class CheckSpec(Spec, frozen=True):
    """A command that judges: no shell, run in a folder of its own that links to all that is in the job's.

    fail_codes, ignore_fail_codes, fail_regex: as `debugtools.search.judges.command.PassRule` says. timeout: seconds;
    what takes longer is skipped. parallel: how many run side by side. environment: variables over the job's own.
    cluster: where they run, as `backends.cluster.where` says ("": here); there parallel is 0 for as many as have time.
    """

    command: list[str]
    fail_codes: list[int] | None = None
    ignore_fail_codes: list[int] | None = None
    fail_regex: list[str] | None = None
    show_output: bool = False
    hide_fail_output: bool = False
    timeout: float | None = None
    parallel: int = 1
    environment: dict[str, str] = {}
    cluster: str = ""


class FlakySpec(Spec, frozen=True):
    """A fault that comes and goes: chances that a wrong run passes and that a right run fails (None: not known)."""

    false_good: float | None = None
    false_bad: float | None = 0.0

    @property
    def rates(self) -> tuple[float, float]:
        """Both chances; one that is not known is supposed to be a quarter."""
        miss, wrong = (0.25 if rate is None else rate for rate in (self.false_good, self.false_bad))
        return miss, wrong


class DebugSpec(Spec, frozen=True):
    """One search.

    compare: the model and its two sides, the first one the suspect. With fewer, the reference's tensors come from that
    runner (onnxruntime on the CPU where none is named) with nothing optimised. None for repeating a command.
    check: a command judges; interactive: a person does; else the comparison of the two sides.
    output: where the smallest failing model goes; min_good: where the largest one goes that passes.
    artifact: file name of the candidate, as commands name it. folder: where a person finds it; None: the job's own.
    until: "good", "bad", a number of runs, or "auto": until it is known with `confidence` that fewer than `rate` fail.
    """

    compare: CompareSpec | None = None
    check: CheckSpec | None = None
    interactive: bool = False
    mode: Mode = "ddmin"
    output: str | None = None
    min_good: str | None = None
    reduce_inputs: bool = True
    reduce_outputs: bool = True
    artifacts: list[str] = []
    artifacts_dir: str = "polygraphy_artifacts"
    artifact: str = "polygraphy_debug.onnx"
    folder: str | None = None
    iter_info: str | None = None
    keep_intermediate: bool = False
    load_replay: str | None = None
    save_replay: str | None = None
    until: str = "auto"
    confidence: float = 0.95
    rate: float = 0.1
    flaky: FlakySpec | None = None

    def sides(self, *, anew: bool = False) -> CompareSpec:
        """The comparison that the search rests on; without runners, onnxruntime on the CPU makes the tensors.

        anew: the suspect is built anew each time it is opened, for what changes from build to build.
        """
        from layerwise._tool.backends.trt.options import built_anew, check_anew, trt_options

        assert self.compare is not None
        suspect, *others = self.compare.runners or [RunnerSpec(kind="onnxrt")]
        if anew and suspect.kind == "trt":
            check_anew(trt_options(suspect.options))
        return msgspec.structs.replace(self.compare, runners=[built_anew(suspect) if anew else suspect, *others])


LowType = Literal["float16", "bfloat16", "int8"]


class PrecisionSpec(Spec, frozen=True):
    """Which nodes must stay in FP32 for the model to pass when the others are low.

    search: the model and its sides, who judges, files. The first side runs the candidates (onnxruntime on the CPU where
    none is named); the second one is the reference (the FP32 model on the first side's runner where there is none).
    Its mode: ddmin by predicted effect, then delta debugging; bisect and linear keep the first or last k nodes
    (direction), as Polygraphy does. Its output: the model that passes.
    low: the type of the nodes that are not kept; int8 on TensorRT alone, calibrated with the inputs of the comparison.
    emulate: candidates are FP32 nodes between Cast round trips. None: where two sides judge on a CPU, which would
        compute low nodes in FP32.
    limit: verdicts after which ddmin makes a set that passes no smaller.
    layers: the layer table of the model found; save_layer_outputs: a file for all its tensors and the reference's.
    """

    search: DebugSpec = DebugSpec()
    low: LowType = "float16"
    direction: Literal["forward", "reverse"] = "forward"
    emulate: bool | None = None
    limit: int = 200
    layers: bool = False
    save_layer_outputs: str | None = None


def rounds_like(low: LowType) -> Literal["float16", "bfloat16"]:
    """The floating type that rounds as `low` does: INT8 keeps 8 bits of the largest value."""
    return "bfloat16" if low == "int8" else low


ENGINE = "polygraphy_debug.engine"


class LayersSpec(Spec, frozen=True):
    """How many of the first or last layers of a TensorRT 10 network must run in `precision`, as Polygraphy asks it.

    search: model, command that judges, files; its mode: bisect or linear; its first runner is the engine that is built,
    of kind "trt". direction: forward marks the first layers, reverse the last.
    """

    search: DebugSpec
    precision: Literal["float32", "float16"] = "float32"
    direction: Literal["forward", "reverse"] = "forward"


class BuildsSpec(Spec, frozen=True):
    """One repetition of a build.

    search: model, judge, files, and when to stop; its first runner is the engine that is built, of kind "trt".
    judged: False where that an engine can be built is all that is asked. narrow: then find the tactics that do it.
    """

    search: DebugSpec
    judged: bool = True
    narrow: bool = False

    @property
    def options(self) -> TrtOptions:
        """How the engine is built. UsageError where the description holds none."""
        compare = self.search.compare
        return trt_options(compare.runners[0].options if compare and compare.runners else {})
