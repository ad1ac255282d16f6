"""From parsed options of `run` to a CompareSpec; what cannot be done here ends in one clear error."""

import os
import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.option import filled, read
from layerwise._tool.tui.cli.request.parser import COMPARED, completed
from layerwise._tool.tui.cli.request.runners import make_runners

_TF2ONNX = (
    "TensorFlow, Keras, UFF and Caffe models are not run here. Convert once with tf2onnx:\n"
    "    python -m tf2onnx.convert --saved-model DIR --output model.onnx      (or --graphdef, --checkpoint, --keras)\n"
    "and give the .onnx file."
)
_TF_TYPES = {"frozen", "keras", "ckpt", "uff", "caffe"}
_TF_SUFFIXES = (".pb", ".h5", ".keras", ".uff", ".prototxt", ".caffemodel", ".meta")
_KNOWN = re.compile(r"(?i)\.(onnx|engine|plan|trt|py|py:\w+)$")
_TRT_MODEL = re.compile(r"(?i)\.(engine|plan|trt|py|py:\w+)$")


class Request:
    """What a command line asks for, and what to tell the user about it."""

    __slots__ = ("notes", "spec")

    def __init__(self, spec: CompareSpec, notes: list[str]) -> None:
        self.spec, self.notes = spec, notes


def to_request(args: Namespace, *, bare: bool = False) -> Request:
    """The comparison that parsed options of `run`, or of a command that has some of them, describe.

    bare: it may have no runner. Raises UsageError for what does not fit together.
    """
    args = completed(args)
    refuse_other_frameworks(args)
    if args.data_loader_script and args.load_inputs:
        raise UsageError("--load-inputs and --data-loader-script exclude each other: choose one source of inputs.")
    if bare and not args.runners and args.model_file and not (args.model_type or _KNOWN.search(args.model_file)):
        raise UsageError(f"{shown(args.model_file, 200)}: what it is does not show in its name: say --model-type")
    spec = filled(CompareSpec(model=model_path(args), runners=make_runners(args)), read(COMPARED, args))
    _check(spec, bare)
    return Request(spec, list(_notes(args, spec)))


def given(args: Namespace, runners: list[tuple[str, list[str] | None]]) -> CompareSpec:
    """What the options that a command shares with `run` say about model, inputs and these runners."""
    return to_request(Namespace(**{**vars(args), "runners": runners})).spec


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
    return filled(CompareSpec(), read((COMPARE, THRESHOLDS), completed(args))).tolerance


def _check(spec: CompareSpec, bare: bool) -> None:
    if any(runner.kind != "saved" and runner.model is None for runner in spec.runners) and spec.model is None:
        raise UsageError(
            "Runners were given but no model. Give its path first: an option that takes several values "
            "swallows a path that follows it."
        )
    if not spec.runners and not bare:
        raise UsageError("Nothing to run: give runners (--onnxrt, --onnx, …) or saved outputs (--load-outputs A B).")
    _check_saved(spec)
    if spec.check_average and spec.fail_fast:
        raise UsageError("--check-average needs every iteration; it cannot go with --fail-fast.")


def _check_saved(spec: CompareSpec) -> None:
    """Refuse to save over inputs or outputs that are loaded, or in the folder that holds them."""
    loaded = [*spec.feeds.files, *(runner.results for runner in spec.runners if runner.results)]
    for saved in filter(None, (spec.save_inputs, spec.save_input_blob, spec.save_outputs)):
        place = Path(os.path.abspath(saved))  # noqa: PTH100 (as it is written, links and all)
        for path in loaded:
            if Path(os.path.abspath(path)).is_relative_to(place):  # noqa: PTH100
                raise UsageError(f"{shown(saved, 200)} would replace {shown(path, 200)}, which this command reads")


def _notes(args: Namespace, spec: CompareSpec) -> Iterator[str]:
    if not spec.runners:
        yield "No runners have been selected. Inference will not be run!"
    bare = [text for text in args.check_error_stat if ":" not in text]
    if len(bare) > 1:
        yield f"--check-error-stat: '{shown(bare[-1])}' holds for all outputs; write OUTPUT:STAT for one of them."
    feeds = spec.feeds
    synthetic = feeds.seed != 1 or feeds.val_range or feeds.backend_module != "numpy"
    if synthetic and (feeds.files or feeds.script):
        yield "--seed, --val-range and --data-loader-backend-module have no effect on inputs that are given."
    if args.show_heatmaps or args.show_error_metrics_plot:
        yield (
            "There are no windows here: --show-… is ignored; --save-heatmaps and --save-error-metrics-plot write files."
        )
