"""What to run and what to feed it, as plain values that serialise to JSON.

Imports little: the app and the command line build these without importing numpy or any engine.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.wording import in_words

Read = TypeVar("Read")


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all specs: immutable, converted to and from JSON, unknown fields rejected."""


def settle_types() -> None:
    """Have msgspec learn all Structs that are defined by now.

    It learns one when it is first read, and meanwhile another thread that reads the same one crashes: call it before
    threads read any.
    """
    found = list(msgspec.Struct.__subclasses__())
    for kind in found:
        found += kind.__subclasses__()
        with suppress(TypeError, NameError, AttributeError):  # it is never read: its annotations name what is not there
            msgspec.json.Decoder(kind)


def read_spec(params: object, kind: type[Read], what: str) -> Read:
    """The spec that a job's parameters are. UsageError where they are none; what: it describes, in words."""
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"the description of {what} does not fit: {in_words(error)}") from None


RunnerKind = Literal["onnxrt", "reference", "saved", "pluginref", "trt", "torch", "extension"]
OptimizationLevel = Literal["disable", "basic", "extended", "layout", "all"]
ENGINE_SUFFIXES = (".engine", ".plan", ".trt")  # of files that hold an engine of TensorRT


class DumpRule(Spec, frozen=True):
    """How the files of another program's dump are read, as far as it is said.

    pattern: of paths, with {name}, {iteration} and {rank}, `*` for what does not matter. replace: pairs of texts; the
    first becomes the second in a tensor's name. layouts: glob of names -> steps `0,2,3,1` (a permutation) or `1x64x-1`
    (a shape), with spaces between. types: glob of names -> the type that raw elements are of.
    """

    pattern: str = ""
    replace: list[tuple[str, str]] = []
    layouts: dict[str, str] = {}
    types: dict[str, str] = {}


QUANTISED_AS_WRITTEN = "session.disable_quant_qdq"
"""onnxruntime's setting of a session with which QuantizeLinear and DequantizeLinear are run as they are written."""
NO_SPINNING = ("session.intra_op.allow_spinning", "0")
"""The setting with which threads of a session do not spin while those of another compute."""
BRIEF_SPINNING = {"session.intra_op.spin_duration_us": "1000", "session.force_spinning_stop": "1"}
"""Settings with which threads of a session spin between the operators of a run, but not for some 40 ms after it and
when it is opened, while others compute. The second one is for onnxruntimes that do not know the first.
"""
NO_PACKING = ("session.disable_prepacking", "1")
"""The setting with which a session does not copy weights into the order of its kernels: for one run that does not pay.
Sums may be rounded in another order then.
"""


class RunnerSpec(Spec, frozen=True):
    """One configured backend.

    kind: onnxrt (onnxruntime), reference (ONNX reference evaluator), saved (outputs read from a file),
        pluginref (CPU references of TensorRT plugins), trt (TensorRT), torch (a PyTorch module),
        extension (what a script of an extension module of `run` makes).
    name: shown in reports; empty gives Polygraphy's form `onnxrt-runner-N0-<date>-<time>`.
    model: path of this side's own model; None is the model of the comparison. Of a PyTorch module what `--torch` names.
    rename: tensor name in the comparison's model -> tensor name on this side.
    providers: onnxruntime providers as the user wrote them ("cuda", "cpu", "tensorrt"); empty is CPU.
    provider_options: provider -> its options, as onnxruntime takes them.
    tf32: CUDA only; None leaves onnxruntime's default (on).
    session_config: onnxruntime's settings of a session by key, as "session.x64quantprecision".
    results / results_index: saved outputs, and which runner of that file; -1 is every runner, one side each.
    dump: how they are read, where they are another program's.
    options: kind-specific options (TensorRT's build options, how a PyTorch module is run).
    """

    kind: RunnerKind
    name: str = ""
    model: str | None = None
    rename: dict[str, str] = {}
    providers: list[str] = []
    provider_options: dict[str, dict[str, str]] = {}
    tf32: bool | None = None
    graph_optimization_level: OptimizationLevel | None = None
    threads: int | None = None
    inter_threads: int | None = None
    session_config: dict[str, str] = {}
    custom_ops: list[str] = []
    results: str | None = None
    results_index: int = 0
    dump: DumpRule | None = None
    options: dict[str, Any] = {}

    @property
    def session_settings(self) -> dict[str, str]:
        """`session_config`, and what was given as an option of the same name, as before there was that field."""
        given = {**self.options.get("session_config", {}), **self.session_config}
        return {key: str(value) for key, value in given.items()}

    def setting(self, key: str, value: str) -> "RunnerSpec":
        """The runner with a setting of its sessions."""
        return replace(self, session_config={**self.session_config, key: value})

    def usual_settings(self, settings: Mapping[str, str]) -> "RunnerSpec":
        """The runner with settings of its sessions, each of which counts where the user has set nothing else."""
        return replace(self, session_config={**settings, **self.session_settings})


InputKind = Literal["integers", "uniform", "normal", "mask", "positions", "lengths", "values"]


class InputPlan(Spec, frozen=True):
    """What one input is fed with, read from the graph; a row of table `plan`.

    declared: its shape in the model (None: no rank). shapes: those that are fed, one an iteration in turn.
    kind and range: integers spread over low…high, both included; uniform floats from low up to high; normal floats of
    mean 0 and deviation 1; mask: `high` and, behind it, a tail of `low` along the last axis, another one for each row;
    positions: low, low + 1, … along the last axis, at most high; lengths: high for the first row, others from low;
    values: `values`, or low everywhere. pinned: shape or range is the user's.
    """

    name: str
    dtype: str
    declared: list[int | str | None] | None
    shapes: list[list[int]]
    kind: InputKind
    low: float = 0.0
    high: float = 1.0
    values: list[float] = []
    reason: str = ""
    pinned: bool = False


MOST_SEED = (1 << 32) - 1
"""The largest seed that NumPy's generators take."""


class FeedSpec(Spec, frozen=True):
    """Where the feed dicts come from.

    files (JSON, safetensors, npz, a folder of per-iteration JSON, or a dump of another program) take precedence over
    script, script over synthetic data. val_range: input name ("" for all others) -> (low, high). shapes: input name ->
    one shape per iteration in turn (dimensions as integers). iterations: None is 1 for synthetic data, otherwise all
    that the source has. script: path of a Python file; function: the name in it. made: how synthetic data are made, as
    Polygraphy does or by what the graph does with its inputs; plan: that, once the graph was read.
    """

    seed: int = 1
    val_range: dict[str, tuple[float, float]] = {}
    shapes: dict[str, list[list[int]]] = {}
    iterations: int | None = None
    files: list[str] = []
    script: str | None = None
    function: str = "load_data"
    backend_module: Literal["numpy", "torch"] = "numpy"
    made: Literal["polygraphy", "auto"] = "polygraphy"
    plan: list[InputPlan] = []


class ModelOptions(Spec, frozen=True):
    """How a model file is read before anything runs, and saved. fp16: it is converted to FP16. external_each: a file
    for each weight.
    """

    external_data_dir: str | None = None
    ignore_external_data: bool = False
    fp16: bool = False
    shape_inference: bool = True
    save_onnx: str | None = None
    save_external_data: str | None = None
    external_each: bool = False
    external_data_size_threshold: int | None = None
