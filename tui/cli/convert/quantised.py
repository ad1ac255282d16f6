"""`convert --fp8` and `--int4`: the model with QuantizeLinear and DequantizeLinear nodes, and what that costs."""

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.search.lens.spec import LensSpec, Rounding
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def quantises(args: Namespace) -> bool:
    """Whether FP8 or INT4 is asked for in an ONNX model."""
    return bool(args.fp8 or args.int4)


def quantised_job(args: Namespace) -> "JobSpec":
    """The job that writes the model and runs it once beside FP32. UsageError for what does not fit together."""
    others = [name for name in ("int8", "fp_to_fp16", "fp_to_bf16", "opset", "load_weights") if getattr(args, name)]
    if (args.fp8 and args.int4) or others:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in ("fp8", "int4", *others) if getattr(args, name))
        raise UsageError(f"{flags}: one conversion at a time")
    replaces(args.output, [args.model_file], args.overwrite)
    compare = given(Namespace(**{**vars(args), "fp_to_fp16": False, "opset": None, "tf32": None}), [("onnxrt", None)])
    rounding = Rounding(to="fp8e4m3", weight_scales="tensor" if args.per_tensor else "channel")
    if args.int4:
        rounding = Rounding(to="int4", activations=False, weight_scales="channel" if args.per_tensor else "block")
    spec = LensSpec(
        compare=msgspec.structs.replace(compare, runners=[]), rounding=rounding, ops=args.quantize_types,
        keep=args.keep_fp32, keep_types=args.keep_fp32_types, prove=True, output=args.output,
    )  # fmt: skip
    return job_spec("debug_lens", msgspec.to_builtins(spec), args.words)
