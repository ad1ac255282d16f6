"""`layerwise convert`: a model in another precision, opset or format."""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.specs import ENGINE_SUFFIXES
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.convert.spec import ConvertSpec
from layerwise._tool.tui.cli.convert.engine import POOLED, engine_job
from layerwise._tool.tui.cli.convert.options import add_conversions, quantize_spec
from layerwise._tool.tui.cli.convert.quantised import quantised_job, quantises
from layerwise._tool.tui.cli.inspect.trt import picture_job
from layerwise._tool.tui.cli.options.common import NEEDED_MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.options.trt import TENSORFLOW, TRT
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.to_spec import given, refuse_other_frameworks
from layerwise._tool.tui.cli.submit import job_spec, say_message

Target = Literal["onnx", "weights", "engine", "picture"]
_FORMATS = {".onnx": "onnx", ".npz": "weights", ".npy": "weights"}
_BUILDER_FLAGS = {"fp16": "--fp-to-fp16", "bf16": "--fp-to-bf16", "fp8": None}


def fill_convert(parser: Parser) -> None:
    parser.halves = True
    parser.usage = "%(prog)s MODEL.onnx -o OUTPUT [OPTIONS]"
    parser.epilog = (
        "layerwise convert M.onnx --fp-to-fp16 -o fp16.onnx --keep-fp32-types Softmax LayerNormalization\n"
        "layerwise convert M.onnx --int8 --load-inputs inputs.json -o int8.onnx\n"
        "layerwise convert M.onnx --fp8 --load-inputs inputs.json -o fp8.onnx --keep-fp32 /head/MatMul\n"
        "layerwise convert M.onnx --opset 17 -o older.onnx\n"
        "layerwise convert M.onnx -o weights.npz; layerwise convert M.onnx --load-weights weights.npz -o new.onnx\n\n"
        "Exit code: 0 converted, 1 it cannot be, 2 wrong usage, 130 interrupted."
    )
    add(parser, NEEDED_MODEL)
    add_conversions(parser)
    add(parser, DATA, ONNX, TRT, TENSORFLOW)


def run_convert(args: Namespace, log: Log) -> int:
    """Convert the model; 0 if that went well."""
    target = _target(args)
    if target == "engine" and args.fp_to_fp16:
        from layerwise._tool.tui.cli.half import in_half

        with in_half(args, log) as half:
            return run_convert(half, log)
    if target == "engine":
        job = engine_job(args)
        if args.pooled_outputs:
            log.warning(POOLED)
    elif target == "picture":
        job = picture_job(args)
    elif target == "onnx" and quantises(args):
        job = quantised_job(args)
    else:
        job = job_spec("convert", msgspec.to_builtins(to_convert(args, target)), args.words)
    return run_as_asked(job, args, log, lambda: partial(say_message, log=log))


def _target(args: Namespace) -> Target:
    """What to make, by --convert-to or the output's name. UsageError where neither says it."""
    suffix = Path(args.output or "").suffix.lower()
    if args.convert_to == "onnx-like-trt-network":
        return "picture"
    if args.convert_to == "trt" or (not args.convert_to and suffix in ENGINE_SUFFIXES):
        return "engine"
    refuse_other_frameworks(args)
    if args.output is None:
        raise UsageError("-o/--output is missing: the path of the converted model")
    kind = args.convert_to or _FORMATS.get(suffix)
    if kind is None:
        raise UsageError(
            f"'{shown(args.output, 200)}' does not say what to convert to: name it .onnx (or .npz for the weights "
            "alone), or give --convert-to onnx"
        )
    return "weights" if kind == "weights" else "onnx"


def to_convert(args: Namespace, target: Target) -> ConvertSpec:
    """The ConvertSpec of parsed options. UsageError for what does not fit together."""
    _check(args, target)
    compare = given(Namespace(**{**vars(args), "fp_to_fp16": False, "opset": None, "tf32": None}), [("onnxrt", None)])
    marks = compare.marks
    return ConvertSpec(
        model=args.model_file,
        model_options=compare.model_options,
        opset=_opset(args.opset),
        weights=args.load_weights,
        marks=marks,
        low="float16" if args.fp_to_fp16 else "bfloat16" if args.fp_to_bf16 else None,
        int8=quantize_spec(args, compare.feeds) if args.int8 else None,
        keep=args.keep_fp32,
        keep_types=args.keep_fp32_types,
        output=args.output,
        only_weights=args.weights,
        overwrite=replaces(args.output, [args.model_file], args.overwrite),
    )


def _check(args: Namespace, target: Target) -> None:
    for name, instead in _BUILDER_FLAGS.items():
        if getattr(args, name):
            hint = f"say {instead}" if instead else "there is none"
            raise UsageError(f"--{name} is for building engines; for an ONNX model with such nodes {hint}")
    if args.int8 and args.calibration == "mse":
        raise UsageError("--calibration mse: onnxruntime's quantiser has none; leave out what it alone takes")
    if args.int8 and (args.fp_to_fp16 or args.fp_to_bf16):
        raise UsageError("--int8 starts from an FP32 model: leave out --fp-to-fp16 and --fp-to-bf16")
    if args.quantizer and not args.int8:
        raise UsageError("--quantizer goes with --int8")
    low = args.int8 or args.fp_to_fp16 or args.fp_to_bf16
    if (args.keep_fp32 or args.keep_fp32_types) and not low:
        raise UsageError("--keep-fp32 goes with --fp-to-fp16, --fp-to-bf16 or --int8")
    if target == "weights" and low:
        raise UsageError("the weights alone are saved as they are: convert the model first")
    if target == "onnx" and args.weights:
        raise UsageError("--weights goes with an output that ends in .npz or .npy")


def _opset(text: str | None) -> int | None:
    if text is None or text.isdecimal():
        return None if text is None else parse_size(text)
    raise UsageError(f"--opset {shown(text, 40)}: a whole number is needed")
