"""`convert --int8`, `--fp8`, `--int4` by the lens's code: QuantizeLinear and DequantizeLinear, and what they cost."""

from argparse import Namespace
from typing import TYPE_CHECKING, Literal

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.onnxrt.quantize_spec import QuantizeSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.lens.spec import Calibration, LensSpec, Rounding
from layerwise._tool.surgery.quantise.formats import QUANTISED_OPS
from layerwise._tool.tui.cli.convert.options import quantize_spec
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

Granularity = Literal["tensor", "channel", "block"]
_MARKS = ("onnx_outputs", "onnx_exclude_outputs", "onnx_outputs_by_type", "mark_all", "mark", "mark_type")
_ONLY_ONNXRUNTIMES = ("calibration_cache", "opset", "load_weights", *_MARKS)
_FORMATS = ("int8", "fp8", "int4")


def quantises(args: Namespace) -> bool:
    """Whether INT8, FP8 or INT4 is asked for in an ONNX model, and the lens's code does it."""
    if args.fp8 or args.int4:
        return True
    wants_others = any(getattr(args, name, None) for name in _ONLY_ONNXRUNTIMES)
    theirs = args.quantizer == "onnxruntime" or (args.quantizer is None and wants_others)
    return bool(args.int8 and not theirs)


def quantised_job(args: Namespace) -> "JobSpec":
    """The job that writes the model and runs it once beside FP32. UsageError for what does not fit together."""
    _refuse(args)
    replaces(args.output, [args.model_file], args.overwrite)
    compare = given(Namespace(**{**vars(args), "fp_to_fp16": False, "opset": None, "tf32": None}), [("onnxrt", None)])
    rounding = _rounding(args, quantize_spec(args, compare.feeds))
    spec = LensSpec(
        compare=msgspec.structs.replace(compare, runners=[]), rounding=rounding,
        ops=args.quantize_types, keep=args.keep_fp32, keep_types=args.keep_fp32_types, prove=True, output=args.output,
    )  # fmt: skip
    return job_spec("debug_lens", msgspec.to_builtins(spec), args.words)


def _refuse(args: Namespace) -> None:
    if args.int8 and (args.fp_to_fp16 or args.fp_to_bf16):
        raise UsageError("--int8 starts from an FP32 model: leave out --fp-to-fp16 and --fp-to-bf16")
    wanted = [name for name in _FORMATS if getattr(args, name)]
    others = [name for name in ("fp_to_fp16", "fp_to_bf16", *_ONLY_ONNXRUNTIMES) if getattr(args, name, None)]
    if len(wanted) > 1 or others:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in (*wanted, *others))
        raise UsageError(f"{flags}: one conversion at a time")
    unknown = [op for op in args.quantize_types if op not in QUANTISED_OPS]
    if unknown:
        more = "; --quantizer onnxruntime quantises more" if args.int8 else ""
        raise UsageError(f"this does not quantise {shown(unknown[0], 60)!r}, but {', '.join(QUANTISED_OPS)}{more}")


def _rounding(args: Namespace, asked: QuantizeSpec) -> Rounding:
    """How values are laid onto the format, with the calibrators of both spellings."""
    weights: Granularity = "block" if args.int4 else "channel"
    if args.per_tensor:
        weights = "channel" if args.int4 else "tensor"
    told: Calibration = "minmax" if asked.method == "distribution" else asked.method
    return Rounding(
        to="int4" if args.int4 else "fp8e4m3" if args.fp8 else "int8", activations=not args.int4, weight_scales=weights,
        symmetric_activations=not args.asymmetric, calibration=args.calibration or told,
        percentile=asked.percentile or 99.99,
    )  # fmt: skip
