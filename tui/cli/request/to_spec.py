"""From parsed options of `run` to a CompareSpec; what cannot be done here ends in one clear error."""

import re
from argparse import Namespace
from dataclasses import dataclass, field
from typing import cast, get_args

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.specs import FeedSpec, ModelOptions
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, MetricName, Stat, ToleranceSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.request.to_runners import make_runners

_ALIASES: dict[str, list[MetricName]] = {
    "distance_metrics": ["l2", "cosine_similarity"],
    "quality_metrics": ["psnr", "snr"],
}
_TF2ONNX = (
    "TensorFlow, Keras, UFF and Caffe models are not run here. Convert once with tf2onnx:\n"
    "    python -m tf2onnx.convert --saved-model DIR --output model.onnx      (or --graphdef, --checkpoint, --keras)\n"
    "and give the .onnx file."
)
NO_TENSORRT = (
    "TensorRT is not supported in this version of this command; `layerwise run --trt` and `layerwise convert -o "
    "MODEL.engine` do use it."
)
_TF_TYPES = {"frozen", "keras", "ckpt", "uff", "caffe"}
_TF_SUFFIXES = (".pb", ".h5", ".keras", ".uff", ".prototxt", ".caffemodel", ".meta")
_TRT_MODEL = re.compile(r"(?i)\.(engine|plan|trt|py|py:\w+)$")


@dataclass
class Request:
    """What a command line asks for, and what to tell the user about it."""

    spec: CompareSpec
    notes: list[str] = field(default_factory=list)


def to_request(args: Namespace, *, converts: bool = False) -> Request:
    """The comparison that parsed `run` options describe. converts: --fp-to-fp16 is for this command.

    Raises UsageError for what does not fit together.
    """
    if args.fp_to_fp16 and not converts:
        raise UsageError(
            "--fp-to-fp16: convert the model first (`layerwise convert MODEL --fp-to-fp16 -o FP16.onnx`) "
            "and give FP16.onnx to this command"
        )
    refuse_other_frameworks(args)
    notes = _notes(args)
    marks = _marks(args)
    spec = CompareSpec(
        model=model_path(args),
        model_options=_model_options(args),
        runners=make_runners(args),
        feeds=_feeds(args),
        marks=marks,
        observe=args.observe,
        metrics=metric_names(args.compare),
        tolerance=tolerance(args),
        rename=values.parse_names_map(args.rename or []),
        validate=args.validate,
        fail_fast=args.fail_fast,
        shape_check=not args.no_shape_check,
        check_average=args.check_average,
        statistics=not _marked(marks) if args.statistics is None else args.statistics,
        postprocess=values.parse_map(
            args.postprocess, values.parse_top_k, "a postprocess function (top-5, top-3,axis=1)"
        ),
        postprocess_script=args.postprocess_func_script,
        compare_script=args.compare_func_script,
        memory_budget=parse_size(args.memory_budget) if args.memory_budget else None,
        warm_up=args.warm_up,
        sequential=args.sequential_runners,
        save_inputs=args.save_inputs,
        save_input_blob=args.save_input_blob,
        save_outputs=args.save_outputs,
        save_accuracy=args.save_accuracy_results,
        save_heatmaps=args.save_heatmaps,
        save_error_plots=args.save_error_metrics_plot,
    )
    _check(spec)
    return Request(spec, notes)


def refuse_other_frameworks(args: Namespace) -> None:
    """Raise the one error for TensorFlow and its like, or for an engine that no --trt runs."""
    model = args.model_file or ""
    kinds = [kind for kind, _ in getattr(args, "runners", [])]
    if "tf" in kinds or args.model_type in _TF_TYPES or model.lower().endswith(_TF_SUFFIXES):
        raise UsageError(_TF2ONNX)
    others = [kind for kind in kinds if kind != "trt"]
    if wants_engine(args) and (others or not kinds):
        raise UsageError(f"{shown(model)} is taken for a TensorRT engine or network script: only --trt runs it")


def wants_engine(args: Namespace) -> bool:
    """Whether the model is an engine, or a script that makes a network."""
    return args.model_type in ("engine", "trt-network-script") or bool(_TRT_MODEL.search(args.model_file or ""))


def model_path(args: Namespace) -> str | None:
    """The model's path, without the function of a network script."""
    model: str | None = args.model_file
    return values.parse_script(model, "")[0] if model and wants_engine(args) else model


def tolerance(args: Namespace) -> ToleranceSpec:
    """The pass rules among parsed options (of `run` and of `check accuracy`)."""
    return ToleranceSpec(
        atol=values.parse_map(args.atol, values.bound, "a tolerance"),
        rtol=values.parse_map(args.rtol, values.bound, "a tolerance"),
        stat=values.parse_map(args.check_error_stat, _stat, "a statistic (elemwise, max, mean, median, quantile)"),
        quantile=values.parse_map(args.error_quantile, _fraction, "a quantile between 0 and 1"),
        auto=getattr(args, "tolerance", "fixed") == "auto",
        infinities_compare_equal=args.infinities_compare_equal,
        index_tolerance=values.parse_map(args.index_tolerance, int, "a whole number"),
        l2=values.parse_map(args.l2_threshold, values.bound, "a threshold"),
        cosine=values.parse_map(args.cosine_similarity_threshold, values.bound, "a threshold"),
        psnr=values.parse_map(args.psnr_threshold, values.bound, "a threshold"),
        snr=values.parse_map(args.snr_threshold, values.bound, "a threshold"),
        lpips=values.parse_map(args.lpips_threshold, values.bound, "a threshold"),
    )


def metric_names(names: list[str] | None) -> list[MetricName]:
    """Metrics as `--compare` names them, groups spelt out; `simple` where none is named."""
    chosen: dict[MetricName, None] = {}
    for name in names or ["simple"]:
        chosen.update(dict.fromkeys(_ALIASES.get(name) or [cast(MetricName, name)]))
    return list(chosen)


def _check(spec: CompareSpec) -> None:
    if any(runner.kind != "saved" and runner.model is None for runner in spec.runners) and spec.model is None:
        raise UsageError(
            "Runners were given but no model. Give its path first: an option that takes several values "
            "swallows a path that follows it."
        )
    if not spec.runners:
        raise UsageError("Nothing to run: give runners (--onnxrt, --onnx, …) or saved outputs (--load-outputs A B).")
    if spec.check_average and spec.fail_fast:
        raise UsageError("--check-average needs every iteration; it cannot go with --fail-fast.")


def _stat(text: str) -> Stat:
    if text not in get_args(Stat):
        raise ValueError(text)
    return text  # type: ignore[return-value]


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _marked(marks: MarkSpec) -> bool:
    return bool(marks.everything or marks.names or marks.op_types)


def _marks(args: Namespace) -> MarkSpec:
    instead = args.onnx_outputs or []
    besides = args.mark or []
    everything = args.mark_all or any(_means_all(names) for names in (instead, besides))
    types = (args.onnx_outputs_by_type or []) + (args.mark_type or [])
    return MarkSpec(
        everything=everything,
        names=[name for names in (instead, besides) if not _means_all(names) for name in names],
        op_types=types,
        exclude=args.onnx_exclude_outputs,
        only=not everything and bool(instead or args.onnx_outputs_by_type),
    )


def _means_all(names: list[str]) -> bool:
    return names in (["*"], ["mark", "all"], ["mark all"], ["mark\\ all"])


def _feeds(args: Namespace) -> FeedSpec:
    script, function = None, "load_data"
    if args.data_loader_script:
        script, function = values.parse_script(args.data_loader_script, args.data_loader_func_name or "load_data")
    if script and args.load_inputs:
        raise UsageError("--load-inputs and --data-loader-script exclude each other: choose one source of inputs.")
    return FeedSpec(
        seed=args.seed,
        val_range=values.parse_ranges(args.val_range),
        shapes=values.parse_shapes(args.input_shapes),
        iterations=args.iterations,
        files=args.load_inputs,
        script=script,
        function=function,
        backend_module=args.data_loader_backend_module,
    )


def _model_options(args: Namespace) -> ModelOptions:
    size = args.external_data_size_threshold
    return ModelOptions(
        external_data_dir=args.external_data_dir,
        ignore_external_data=args.ignore_external_data,
        fp16=args.fp_to_fp16,
        shape_inference=args.shape_inference is not False,
        save_onnx=args.save_onnx,
        save_external_data=args.save_external_data,
        external_data_size_threshold=parse_size(size) if size else None,
    )


def _notes(args: Namespace) -> list[str]:
    notes = []
    bare = [text for text in args.check_error_stat if ":" not in text]
    if len(bare) > 1:
        notes.append(
            f"--check-error-stat: '{shown(bare[-1])}' holds for all outputs; write OUTPUT:STAT for one of them."
        )
    synthetic = args.seed != 1 or args.val_range or args.data_loader_backend_module != "numpy"
    if synthetic and (args.load_inputs or args.data_loader_script):
        notes.append("--seed, --val-range and --data-loader-backend-module have no effect on inputs that are given.")
    if args.show_heatmaps or args.show_error_metrics_plot:
        notes.append(
            "There are no windows here: --show-… is ignored; --save-heatmaps and --save-error-metrics-plot write files."
        )
    if args.no_save_all_tensors_to_one_file:
        notes.append("--no-save-all-tensors-to-one-file: weights are saved in one external file.")
    return notes
