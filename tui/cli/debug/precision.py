"""`layerwise debug precision`: which nodes must stay in FP32 for a model to pass in FP16 or bfloat16.

With --check, and nothing that our search alone has, it builds engines and marks layers as Polygraphy does.
"""

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.log import Log
from layerwise._tool.debugtools.search.spec import ENGINE, LayersSpec, LowType, PrecisionSpec
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.build import refuse_existing, shaped
from layerwise._tool.tui.cli.debug.lens import fill_lens, run_lens
from layerwise._tool.tui.cli.debug.precision_report import PrecisionReport
from layerwise._tool.tui.cli.debug.searching import run_prepared
from layerwise._tool.tui.cli.debug.to_debug import debug_job, to_debug
from layerwise._tool.tui.cli.options.common import MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.trt import PRECISIONS, TRT
from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_LOW: dict[str, LowType] = {"fp16": "float16", "bf16": "bfloat16", "int8": "int8", "fp8": "int8"}
_NOT_HERE = (
    "{flag} is not in this version: nodes are FP16 (--fp16), bfloat16 (--bf16), or INT8 (--int8, with --trt). "
    "--to measures nodes in INT8, FP8, INT4 and block formats on any model."
)


def fill_precision(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [-o MIXED.onnx] [SIDES… | --check COMMAND…] [OPTIONS]"
    parser.epilog = (
        "layerwise debug precision M.onnx --atol 1e-2 --rtol 1e-2 -o mixed.onnx       # FP16 against FP32\n"
        "layerwise debug precision M.onnx --onnxrt --providers cuda --load-inputs inputs.json -o mixed.onnx\n"
        "layerwise debug precision M.onnx --golden-outputs golden.json --mark-all --save-layer-outputs layers.json\n"
        "layerwise debug precision M.onnx -o mixed.onnx --check ./build_and_test.sh polygraphy_debug.onnx\n"
        "layerwise debug precision M.onnx --fp16 --check ./test.sh polygraphy_debug.engine\n"
        "layerwise debug precision M.onnx --to int8 --load-inputs inputs.json                 # what each node does\n"
        "layerwise debug precision M.onnx --to fp8e4m3 --bound 0.02 -o mixed.onnx --lists lists\n\n"
        "The first side runs the candidates (onnxruntime on the CPU if none is given), the second is the reference\n"
        "(the FP32 model on the first side's runner if none is given). Without tolerances, what rounding explains\n"
        "passes. With --check and without -o, engines are built with TensorRT 10 as Polygraphy does, with more of\n"
        "their first or last layers marked to run in FP32 each time; the command judges polygraphy_debug.engine.\n"
        + options.EXIT_CODES
    )
    group = parser.add_argument_group("Precision")
    group.add_argument("-o", "--output", metavar="FILE", help="the model that passes, also while searching")
    group.add_argument(
        "--mode", choices=("bisect", "linear", "ddmin"),
        help="ddmin: by measured error, then every node that can be low again (the default); bisect, linear: the first "
        "or last nodes are kept, as Polygraphy does",
    )  # fmt: skip
    group.add_argument(
        "--dir", "--direction", dest="direction", choices=("forward", "reverse"), default="forward",
        help="for bisect and linear: keep nodes from the inputs on, or from the outputs back",
    )  # fmt: skip
    group.add_argument(
        "-p", "--precision", choices=("float32", "float16"), default="float32", help="of the nodes that are kept"
    )
    group.add_argument("--fp16", action="store_true", help="the others are FP16 (default)")
    group.add_argument("--bf16", action="store_true", help="the others are bfloat16")
    group.add_argument(
        "--int8", action="store_true", help="the others are INT8, calibrated with the inputs (on TensorRT)"
    )
    group.add_argument("--fp8", action="store_true", help="the others are FP8, with --check alone")
    parser.own(
        group, "--emulate", action="store_true",
        help="FP32 nodes between casts, in files too: they show the rounding where FP16 is computed in FP32, as "
        "onnxruntime does on a CPU (where two sides judge on a CPU, candidates are emulated anyway)",
    )  # fmt: skip
    parser.own(group, "--max-checks", type=int, default=200, metavar="N", help="then stop leaving nodes out; 200")
    parser.own(group, "--golden-outputs", nargs="+", metavar="FILE", help="saved outputs of the model: the reference")
    parser.own(group, "--mark-all", action="store_true", help="the layer table of the model found")
    parser.own(group, "--save-layer-outputs", metavar="FILE", help="all its tensors and the reference's")
    fill_lens(parser)
    options.add_judging(parser)
    options.add_iterating(parser)
    parser.set_defaults(iter_artifact=None)
    _add_sides(parser)


def _add_sides(parser: Parser) -> None:
    add(parser, RUNNERS, MODEL, DATA, INFERENCE, COMPARE, THRESHOLDS, ONNXRT, ONNX, JOB)
    TRT.add(parser, without=PRECISIONS)


def run_precision(args: Namespace, log: Log) -> int:
    """Search, or measure nodes one by one (--to); the exit code."""
    if args.to is not None:
        return run_lens(args, log)
    if marks_layers(args):
        return run_prepared(layers_job(to_layers(args), args), False, args, log)
    spec = to_precision(args)
    return run_prepared(precision_job(spec, args), spec.search.interactive, args, log, PrecisionReport)


def to_precision(args: Namespace) -> PrecisionSpec:
    """The PrecisionSpec of parsed options. UsageError for what does not fit together."""
    low = _low(args)
    if args.max_checks < 1:
        raise UsageError("--max-checks must be 1 or more")
    golden = args.golden_outputs or []
    given = Namespace(**{
        **vars(args), "load_outputs": [*args.load_outputs, *golden], "mark_all": False, **dict.fromkeys(_LOW, False),
        "iter_artifact": args.iter_artifact or options.ARTIFACT,
    })  # fmt: skip
    return PrecisionSpec(
        search=to_debug(given, "precision"),
        low=low,
        direction=args.direction,
        emulate=args.emulate or None,
        limit=args.max_checks,
        layers=args.mark_all,
        save_layer_outputs=args.save_layer_outputs,
    )


def _low(args: Namespace) -> LowType:
    """The one low type that is asked for. UsageError for what only engines can be given."""
    asked = [name for name in _LOW if getattr(args, name)]
    if len(asked) > 1:
        raise UsageError(f"{' '.join(f'--{name}' for name in asked)}: one low type at a time, but with --check")
    engines = any(kind == "trt" for kind, _ in args.runners)
    if args.precision != "float32" or "fp8" in asked or ("int8" in asked and not engines):
        flag = f"--precision {args.precision}" if args.precision != "float32" else f"--{asked[0]}"
        raise UsageError(_NOT_HERE.format(flag=flag))
    return _LOW[asked[0]] if asked else "float16"


def marks_layers(args: Namespace) -> bool:
    """Whether engines are asked for, as in Polygraphy: a command judges, and no option is of our search alone."""
    own = args.output or args.emulate or args.golden_outputs or args.load_outputs or args.mark_all
    others = [kind for kind, _ in args.runners if kind != "trt"]
    searches = own or args.save_layer_outputs or args.interactive or args.mode == "ddmin" or others
    return args.check is not None and not searches


def to_layers(args: Namespace) -> LayersSpec:
    """The search over layers that `args` describe. UsageError for what does not fit."""
    if args.jobs not in (None, 1):
        raise UsageError("--jobs: builds take turns, since they share the GPU")
    filled = Namespace(**{
        **vars(args), "runners": [("trt", None)], "mode": args.mode or "bisect",
        "iter_artifact": args.iter_artifact or ENGINE,
        "precision_constraints": args.precision_constraints or ["obey"],
    })  # fmt: skip
    search = to_debug(filled, "precision")
    refuse_existing(search)
    search = msgspec.structs.replace(search, compare=shaped(search.compare, args))
    return LayersSpec(search=search, precision=args.precision, direction=args.direction)


def layers_job(spec: LayersSpec, args: Namespace) -> "JobSpec":
    """The job. It holds the GPU; what the command runs is lent it."""
    job = debug_job(spec.search, "layers", args)
    gpus = trt_gpus() if args.gpus is None else args.gpus
    return msgspec.structs.replace(job, params=msgspec.to_builtins(spec), gpus=gpus)


def precision_job(spec: PrecisionSpec, args: Namespace) -> "JobSpec":
    """The job, with the job options of the command line."""
    job = debug_job(spec.search, "precision", args)
    return msgspec.structs.replace(job, params=msgspec.to_builtins(spec))
