"""`layerwise convert … -o x.engine`: from parsed options to a build of TensorRT's."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import given, model_path, refuse_other_frameworks
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

POOLED = (
    "--pooled-outputs: outputs always share the device memory of their runner, which only grows; nothing of that is in "
    "the engine."
)
_ONNX_ONLY = {"fp_to_bf16": "--fp-to-bf16", "opset": "--opset", "load_weights": "--load-weights",
              "weights": "--weights"}  # fmt: skip


def engine_job(args: Namespace) -> "JobSpec":
    """The job that builds the engine which parsed options of `convert` describe. UsageError for what does not fit."""
    for name, flag in _ONNX_ONLY.items():
        if getattr(args, name):
            raise UsageError(f"{flag} is for ONNX models: convert to one first, then build the engine of that")
    refuse_other_frameworks(Namespace(**{**vars(args), "runners": [("trt", None)]}))
    named = getattr(args, "named", None) or model_path(args)  # a model that was converted lies elsewhere
    output = args.output or f"{Path(named or 'model').stem}.engine"
    compare = given(Namespace(**{**vars(args), "tf32": None}), [("trt", None)])
    options = trt_options(args)
    fields: dict[str, Any] = {
        "model": model_path(args),
        "output": output,
        "options": msgspec.to_builtins(with_shapes(options, args)),
        "model_options": msgspec.to_builtins(compare.model_options),
        "marks": msgspec.to_builtins(compare.marks),
        "overwrite": replaces(args.output, [named], args.overwrite),
        "verbose": bool(args.verbose or args.extra_verbose),
    }
    return job_spec("build_engine", fields, args.words, gpus=trt_gpus())


def with_shapes(options: TrtOptions, args: Namespace) -> TrtOptions:
    """--input-shapes say how large dynamic inputs are where no profile does; several of one input are its range."""
    shapes = values.parse_shapes(args.input_shapes)
    listed = ", ".join(name for name, many in shapes.items() if len(many) > 1)
    if listed:
        raise UsageError(f"--input-shapes has several shapes of {listed}: give its range with --trt-min-shapes, "
                         "--trt-opt-shapes and --trt-max-shapes")  # fmt: skip
    return msgspec.structs.replace(options, shapes={name: many[0] for name, many in shapes.items()})
