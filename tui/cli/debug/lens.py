"""`layerwise debug precision --to FORMAT`: what each node's low precision does, and which to leave alone."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.lens.spec import Bound, LensSpec, Rounding
from layerwise._tool.surgery.quantise.formats import FORMATS
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.debug.lens_report import LensReport, document
from layerwise._tool.tui.cli.debug.to_debug import to_debug
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_METRICS = ("rel_l2", "sqnr", "cosine", "max_abs", "tolerance")
_ONLY_WEIGHTS = ("int4", "uint4")


def fill_lens(parser: Parser) -> None:
    """Declare the options of the lens in the parser of `debug precision`."""
    group = parser.add_argument_group("Measuring each node (--to)")
    parser.own(
        group, "--to", choices=tuple(FORMATS), metavar="FORMAT",
        help=f"measure what each node alone does to the outputs in FORMAT, by fake quantisation: {', '.join(FORMATS)}",
    )  # fmt: skip
    parser.own(
        group, "--what", choices=("both", "weights", "activations"),
        help="which tensors become low; both, but weights of int4 and uint4",
    )  # fmt: skip
    parser.own(group, "--weight-scales", choices=("tensor", "channel", "block"),
               help="a scale for each: channel, but block for int4 and uint4")  # fmt: skip
    parser.own(group, "--activation-scales", choices=("tensor", "channel"), default="tensor",
               help="a scale for each tensor (default), or for each place along the axis that is summed")  # fmt: skip
    parser.own(group, "--block", type=int, default=32, metavar="N", help="values of a block of a weight; 32")
    parser.own(group, "--asymmetric", action="store_true", help="activations with a zero point")
    parser.own(group, "--asymmetric-weights", action="store_true", help="weights with a zero point")
    parser.own(group, "--calibration", choices=("minmax", "percentile", "entropy", "mse"), default="minmax",
               help="how ranges follow from the inputs; minmax")  # fmt: skip
    parser.own(group, "--percentile", type=float, default=99.99, metavar="P", help="values within the range; 99.99")
    parser.own(group, "--ops", nargs="+", metavar="OP", help="only nodes of these operators")
    parser.own(group, "--keep", nargs="+", metavar="NODE", help="nodes (or globs) that stay in FP32 in any case")
    parser.own(group, "--prove", action="store_true",
               help="measure no node alone: all but --keep low at once, and the mixed model run")  # fmt: skip
    parser.own(group, "--each", action="store_true",
               help="with --bound: measure every node alone, not in groups where these tell enough")  # fmt: skip
    parser.own(group, "--split", action="store_true", help="weights and activations also one by one")
    parser.own(
        group, "--bound", metavar="X",
        help="choose what stays in FP32: the worst output's relative L2 error is at most X; or METRIC:X with "
        f"{', '.join(_METRICS[:-1])}; or tolerance, for --atol and --rtol; or score:FILE.py:FUNCTION:X, at least X",
    )  # fmt: skip
    parser.own(group, "--cost", choices=("flops", "bytes", "time", "nodes"), default="flops",
               help="what keeping a node costs: its FLOPs (default) or bytes of weights that FORMAT takes less, its "
               "time (--times), or one")  # fmt: skip
    parser.own(group, "--times", metavar="FILE", help="report of `bench --profile -o FILE`, for --cost time")
    parser.own(group, "--lists", metavar="FOLDER", help="what other tools are told to leave alone, as files there")


def run_lens(args: Namespace, log: Log) -> int:
    """Run the job that `args` describe; the exit code."""
    spec = to_lens(args)
    return run_as_asked(lens_job(spec, args), args, log, lambda: LensReport(log).event, document)


def to_lens(args: Namespace) -> LensSpec:
    """The LensSpec of parsed options. UsageError for what does not fit together."""
    for name, value in (("--check", args.check), ("--interactive", args.interactive), ("--mode", args.mode),
                        ("--golden-outputs", args.golden_outputs), ("--load-outputs", args.load_outputs),
                        ("--emulate", args.emulate), ("--mark-all", args.mark_all)):  # fmt: skip
        if value:
            raise UsageError(f"{name} does not go with --to, which measures the model against itself in FP32")
    if len(args.runners) > 1:
        raise UsageError("--to takes one runner: the model is measured against itself in FP32")
    filled = Namespace(**{**vars(args), "iter_artifact": "", "load_outputs": []})
    compare = to_debug(filled, "precision").compare
    assert compare is not None
    bound = _bound(args, tolerance=compare.tolerance.atol or compare.tolerance.rtol)
    if args.cost == "time" and args.times is None:
        raise UsageError("--cost time needs --times: the report of `layerwise bench --profile -o FILE`")
    if args.output and bound is None and not args.prove:
        raise UsageError("-o needs --bound: without one nothing is chosen")
    return LensSpec(
        compare=compare, rounding=_rounding(args), ops=args.ops or [], keep=args.keep or [], each=args.each,
        split=args.split, prove=args.prove, bound=bound, cost=args.cost, times=args.times,
        limit=_positive("--max-checks", args.max_checks),
        output=args.output, lists=args.lists,
    )  # fmt: skip


def _rounding(args: Namespace) -> Rounding:
    few = args.to in _ONLY_WEIGHTS
    what = args.what or ("weights" if few else "both")
    if not 50 < args.percentile <= 100:
        raise UsageError(f"--percentile {args.percentile:g}: above 50, at most 100")
    return Rounding(
        to=args.to, weights=what != "activations", activations=what != "weights",
        weight_scales=args.weight_scales or ("block" if few else "channel"),
        activation_scales=args.activation_scales, block=_positive("--block", args.block),
        symmetric_weights=not args.asymmetric_weights, symmetric_activations=not args.asymmetric,
        calibration=args.calibration, percentile=args.percentile,
    )  # fmt: skip


def _positive(option: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{option} must be 1 or more")
    return value


def _bound(args: Namespace, *, tolerance: Any) -> Bound | None:
    text = args.bound
    if text is None:
        return Bound(metric="tolerance") if tolerance else None
    if text == "tolerance":
        if not tolerance:
            raise UsageError("--bound tolerance: give --atol and --rtol")
        return Bound(metric="tolerance")
    metric, _, rest = text.rpartition(":")
    metric, _, script = metric.partition(":")
    try:
        value = float(rest)
    except ValueError:
        value = float("nan")
    if metric == "score" and script and value == value:
        return Bound(metric="score", value=value, script=script)
    known = {"": "rel_l2"} | {name: name for name in _METRICS[:-1]}
    if script or metric not in known or not value > 0 or value == float("inf") or (metric == "cosine" and value >= 1):
        raise UsageError(f"--bound {shown(text, 80)}: such as 0.01, sqnr:30, cosine:0.999, max_abs:0.1, tolerance, or "
                         "score:FILE.py:FUNCTION:0.9")  # fmt: skip
    return Bound(metric=known[metric], value=value)  # type: ignore[arg-type]


def lens_job(spec: LensSpec, args: Namespace) -> "JobSpec":
    """The job, with the job options of the command line."""
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(spec.compare.runners, args.gpus)
    return job_spec("debug_lens", msgspec.to_builtins(spec), args.words, timeout, gpus)
