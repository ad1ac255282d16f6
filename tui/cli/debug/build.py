"""`layerwise debug build`: the same engine built again and again, each build judged, its files sorted."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import to_dict, trt_options
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import ENGINE, BuildsSpec, DebugSpec
from layerwise._tool.tui.cli.convert.engine import with_shapes
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.searching import run_prepared
from layerwise._tool.tui.cli.debug.to_debug import debug_job, to_debug
from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def fill_build(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx --until UNTIL [BUILD OPTIONS] [SIDE… | --check COMMAND…]"
    parser.epilog = (
        "layerwise debug build M.onnx --fp16 --save-tactics replay.json --artifacts replay.json --until=10 \\\n"
        "    --check layerwise run polygraphy_debug.engine --trt --load-outputs golden.json\n"
        "layerwise debug build M.onnx --onnxrt --until auto --rate 0.05      # against onnxruntime, until it is known\n"
        "layerwise debug build M.onnx --onnxrt --until bad --narrow          # and which tactics do it\n"
        "\nOn TensorRT 11 all builds after the first have tactics drawn from those that it timed.\n"
        "Exit code: 0 repeated to the end, 1 not, 2 wrong usage, 130 interrupted."
    )
    group = parser.add_argument_group("Building again and again")
    stop = group.add_mutually_exclusive_group()
    stop.add_argument(
        "--until", metavar="UNTIL",
        help="good, bad: up to the first one; a number; auto (the default): until known if fewer than --rate fail",
    )  # fmt: skip
    parser.own(stop, "--num-iterations", metavar="N", help="a number; without a judge what can be built is good")
    parser.own(group, "--rate", type=float, default=0.1, metavar="P", help="the failure rate asked about; 0.1")
    parser.own(group, "--confidence", type=float, default=0.95, metavar="P", help="of the answer; 0.95")
    parser.own(
        group, "--narrow", action="store_true",
        help="then find the tactics that do it: builds that mix those of a good and of a bad one",
    )  # fmt: skip
    options.add_judging(parser)
    options.add_iterating(parser)
    parser.set_defaults(iter_artifact=ENGINE)
    options.add_sides(parser)


def run_build(args: Namespace, log: Log) -> int:
    """Build and judge; the exit code."""
    spec = to_builds(args)
    return run_prepared(builds_job(spec, args), spec.search.interactive, args, log)


def to_builds(args: Namespace) -> BuildsSpec:
    """The repetition that `args` describe. UsageError for what does not fit."""
    if args.load_debug_replay or args.save_debug_replay:
        raise UsageError("debug build has no replay: what it looks for changes from build to build")
    if args.jobs not in (None, 1):
        raise UsageError("--jobs: builds take turns, since they are timed")
    if args.model_file is None:
        raise UsageError("the path of the model to build an engine of is missing")
    others = [(kind, given) for kind, given in args.runners if (kind, given) != ("trt", None)]
    until = args.until or args.num_iterations or "auto"
    filled = Namespace(**{**vars(args), "runners": [("trt", None), *others], "until": until})
    search = to_debug(filled, "repeat")
    judged = not (search.interactive and args.num_iterations and not args.interactive)
    search = msgspec.structs.replace(
        search, compare=shaped(search.compare, args), interactive=search.interactive and judged,
        artifact=args.iter_artifact, save_replay=None, keep_intermediate=args.keep_intermediate,
    )  # fmt: skip
    refuse_existing(search)
    return BuildsSpec(search=search, judged=judged, narrow=args.narrow)


def shaped(compare: CompareSpec | None, args: Namespace) -> CompareSpec | None:
    """The comparison, its engine built for --input-shapes where no profile says otherwise."""
    if compare is None:
        return None
    first, *others = compare.runners
    options = to_dict(with_shapes(trt_options(first.options), args))
    return msgspec.structs.replace(compare, runners=[msgspec.structs.replace(first, options=options), *others])


def refuse_existing(search: DebugSpec) -> None:
    """UsageError for a candidate that would overwrite a file."""
    if Path(search.artifact).exists():
        raise UsageError(
            f"{shown(search.artifact)} already exists, refusing to overwrite.\n"
            "Please remove the file manually or specify a different path with `--intermediate-artifact`."
        )


def builds_job(spec: BuildsSpec, args: Namespace) -> "JobSpec":
    """The job. It holds the GPU; what a check command runs is lent it."""
    job = debug_job(spec.search, "build", args)
    gpus = trt_gpus() if args.gpus is None else args.gpus
    return msgspec.structs.replace(job, params=msgspec.to_builtins(spec), gpus=gpus)
