"""Options of `convert`, Polygraphy's and our own."""

from argparse import Namespace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.onnxrt.quantize_spec import CALIBRATORS, Method, QuantizeSpec
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MARKING
from layerwise._tool.tui.cli.options.model import EXTERNAL
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.parser import Parser


def add_conversions(parser: Parser) -> None:
    """What to convert to, and where it goes."""
    group = parser.add_argument_group("Conversion")
    group.add_argument("-o", "--output", metavar="PATH", help="the result: .onnx, .npz, .npy, .engine")
    group.add_argument("--convert-to", choices=("onnx", "trt", "onnx-like-trt-network"),
                       help="by default told from the name of the output")  # fmt: skip
    parser.own(group, "--fp-to-bf16", action="store_true", help="convert floating tensors to bfloat16")
    parser.own(group, "--keep-fp32", nargs="+", action="extend", default=[], metavar="NODE",
               help="nodes that stay in FP32: names, first outputs or globs")  # fmt: skip
    parser.own(group, "--keep-fp32-types", nargs="+", action="extend", default=[], metavar="OP",
               help="operators that stay in FP32")  # fmt: skip
    parser.own(group, "--load-weights", nargs="+", action="extend", default=[], metavar="FILE",
               help="replace weights: FILE.npz, or NAME=FILE.npy")  # fmt: skip
    parser.own(group, "--weights", nargs="+", action="extend", default=[], metavar="NAME",
               help="the weights to save: names or globs; all of them by default")  # fmt: skip
    options.add_overwrite(parser, group)
    group.add_argument("--tf32", action="store_true", help="allow TF32 in engines")
    parser.own(group, "--pooled-outputs", action="store_true", help="outputs share memory; they always do")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    _add_int8(parser)
    add(parser, MARKING, EXTERNAL)


def _add_int8(parser: Parser) -> None:
    group = parser.add_argument_group("INT8, FP8, INT4", "With --int8, --fp8 or --int4 and an ONNX output: "
                                      "QuantizeLinear and DequantizeLinear nodes, calibrated with the input data; "
                                      "--calib-base-cls, --quantile and (of onnxruntime) --calibration-cache hold "
                                      "here too.")  # fmt: skip
    parser.own(group, "--int4", action="store_true",
               help="weights in INT4, in blocks of 32; --fp8: weights and activations in FP8 (E4M3)")  # fmt: skip
    parser.own(group, "--quantizer", choices=("layerwise", "onnxruntime"),
               help="who quantises with --int8: products and tables as `debug precision --to int8` does, or by "
               "onnxruntime's static quantisation; the latter by default where --calibration-cache, --opset, "
               "--load-weights or marks are given, which it alone takes")  # fmt: skip
    parser.own(group, "--calibration", choices=("minmax", "percentile", "entropy", "mse"),
               help="how ranges follow from the inputs, beside --calib-base-cls; minmax")  # fmt: skip
    parser.own(group, "--per-tensor", action="store_true", help="one scale a weight, not one an output channel")
    parser.own(group, "--asymmetric", action="store_true", help="activations with a zero point")
    parser.own(group, "--quantize-types", nargs="+", action="extend", default=[], metavar="OP",
               help="these operators alone")  # fmt: skip


def quantize_spec(args: Namespace, feeds: FeedSpec) -> QuantizeSpec:
    """How to quantise. UsageError for a calibrator or a quantile that is none."""
    if args.calibration and args.calib_base_cls:
        raise UsageError("--calibration and --calib-base-cls say the same: give one of them")
    method = _method(args.calib_base_cls, args.calibration)
    return QuantizeSpec(
        feeds=feeds,
        method=method,
        percentile=None if args.quantile is None else _percent(args.quantile, method),
        per_channel=not args.per_tensor,
        asymmetric=args.asymmetric,
        op_types=args.quantize_types,
        cache=args.calibration_cache,
    )


def _method(name: str | None, plain: str | None) -> Method:
    if name is None:
        return plain if plain in ("percentile", "entropy") else "minmax"  # type: ignore[return-value]
    if name not in CALIBRATORS:
        raise UsageError(f"--calib-base-cls {shown(name, 80)}: one of {', '.join(CALIBRATORS)}")
    return CALIBRATORS[name]


def _percent(text: str, method: Method) -> float:
    if method != "percentile":
        raise UsageError("--quantile goes with --calib-base-cls IInt8LegacyCalibrator or --calibration percentile")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise UsageError(f"--quantile {shown(text, 40)}: a number above 0, at most 1")
    return 100 * value
