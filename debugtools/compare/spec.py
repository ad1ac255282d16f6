"""A comparison as a plain value: what the command line and the app submit as a job."""

from typing import Literal

import msgspec

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec

Stat = Literal["elemwise", "max", "mean", "median", "quantile"]
Observing = Literal["executed", "every", "marked"]
MetricName = Literal["simple", "indices", "l2", "cosine_similarity", "psnr", "snr", "perceptual_metrics"]
FIELDS: dict[str, str] = {
    "l2": "l2", "cosine_similarity": "cosine", "psnr": "psnr", "snr": "snr", "perceptual_metrics": "lpips",
}  # fmt: skip
"""Of metrics of one number: where a rule has the threshold, and a comparison and its row the number."""


class MarkSpec(Spec, frozen=True):
    """Which tensors are observed besides the graph outputs.

    names: exact names or globs; op_types: outputs of every node of these types; exclude: names or globs.
    only: with names, drop the graph's own outputs from the table unless named (Polygraphy's --onnx-outputs).
    """

    everything: bool = False
    names: list[str] = []
    op_types: list[str] = []
    exclude: list[str] = []
    only: bool = False


class ToleranceSpec(Spec, frozen=True):
    """Pass rules. Each map goes from tensor name to value; "" is the default for all others.

    auto: what rounding explains decides of tensors without a value of their own. None: it does where layers are
    compared and nobody gave a tolerance or a statistic.
    """

    atol: dict[str, float] = {}
    rtol: dict[str, float] = {}
    stat: dict[str, Stat] = {}
    quantile: dict[str, float] = {}
    auto: bool | None = None
    infinities_compare_equal: bool = False
    index_tolerance: dict[str, int] = {}
    l2: dict[str, float] = {}
    cosine: dict[str, float] = {}
    psnr: dict[str, float] = {}
    snr: dict[str, float] = {}
    lpips: dict[str, float] = {}


def rules_of(tolerance: ToleranceSpec, *, layers: bool) -> ToleranceSpec:
    """The rules with `auto` settled. layers: inner tensors are compared."""
    if tolerance.auto is not None:
        return tolerance
    given = tolerance.atol or tolerance.rtol or tolerance.stat
    return msgspec.structs.replace(tolerance, auto=layers and not given)


def is_given(tolerance: ToleranceSpec, name: str) -> bool:
    """Whether the user said how far a tensor may be off."""
    return any(values.keys() & {name, ""} for values in (tolerance.atol, tolerance.rtol, tolerance.stat))


class CompareSpec(Spec, frozen=True):
    """One comparison of two or more runners over one or more iterations.

    Pairs are (0,1), (1,2), …; the second of a pair is the reference that relative errors divide by.
    observe: 'executed' streams each runner's own optimised graph, 'every' streams every tensor of the original
        graph unfused, 'marked' runs one session, optimised as asked, with all marked tensors as its outputs (what
        Polygraphy does; all of them are held at once). 'auto' is what saved outputs say they were observed in, and
        'marked' if they say nothing and hold layers; else 'executed' where the runners differ in their optimisation
        alone, and 'every'.
    align: which tensors of two models belong together: 'auto' finds out where layers are compared and names leave
        tensors of both models without counterpart, 'names' says equal names, else a file that says it (a map).
    strict_names: inputs and outputs belong together by name alone, not by similar names or places too.
    figures: histograms of outputs that fail, and their values where they are few; quantiles of small tensors, if few
        tensors are compared.
    all_figures: with figures, those of all outputs, that pass too.
    statistics: exact median and quantiles for every row (several partial sorts a tensor).
    truth: every layer is held against the reference's graph in FP64; all tensors are observed if none are marked.
    memory_budget: bytes the worker may use at its peak; None is no limit. 'marked' is refused where it cannot keep it.
    """

    model: str | None = None
    model_options: ModelOptions = ModelOptions()
    runners: list[RunnerSpec] = []
    feeds: FeedSpec = FeedSpec()
    marks: MarkSpec = MarkSpec()
    observe: Literal["auto", "executed", "every", "marked"] = "auto"
    metrics: list[MetricName] = msgspec.field(default_factory=lambda: ["simple"])
    tolerance: ToleranceSpec = ToleranceSpec()
    rename: dict[str, str] = {}
    align: str = "auto"
    strict_names: bool = False
    figures: bool = False
    all_figures: bool = False
    validate: bool = False
    fail_fast: bool = False
    shape_check: bool = True
    check_average: bool = False
    statistics: bool = False
    truth: bool = False
    postprocess: dict[str, str] = {}
    postprocess_script: str | None = None
    compare_script: str | None = None
    memory_budget: int | None = None
    warm_up: int = 0
    sequential: bool = False
    save_inputs: str | None = None
    save_input_blob: str | None = None
    save_outputs: str | None = None
    save_accuracy: str | None = None
    save_heatmaps: str | None = None
    save_error_plots: str | None = None
    save_align: str | None = None


def compares_layers(spec: CompareSpec) -> bool:
    """Whether tensors besides the outputs of the runs are compared."""
    marks = spec.marks
    return marks.everything or bool(marks.names or marks.op_types) or spec.observe != "auto" or spec.truth


def compares_every_layer(spec: CompareSpec) -> bool:
    """Whether all tensors are compared: asked for, or for want of marks where layers are."""
    marks = spec.marks
    return marks.everything or (not (marks.names or marks.op_types) and (spec.observe != "auto" or spec.truth))


def resumed_tables(spec: CompareSpec) -> list[str]:
    """The tables whose rows another attempt takes up; none where files are made with them."""
    made = spec.save_accuracy or spec.check_average or spec.save_heatmaps or spec.save_error_plots
    return [] if made else ["layers", "validate", "feeds", "alignment"]


NO_FILES: dict[str, None] = {name: None for name in CompareSpec.__struct_fields__ if name.startswith("save_")}
"""Fields of a comparison that writes no files of its own."""


def unsaved(spec: CompareSpec) -> CompareSpec:
    """The same comparison, which writes none of the files that it was asked for."""
    options = msgspec.structs.replace(spec.model_options, save_onnx=None, save_external_data=None)
    return msgspec.structs.replace(spec, model_options=options, **NO_FILES)
