"""`layerwise surgeon sanitize`: clean a model up, fold its constants, change its input shapes."""

from argparse import Namespace
from functools import partial
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_shown
from layerwise._tool.tui.cli.submit import job_spec, say_message
from layerwise._tool.tui.cli.surgeon.common import add_model, add_saving, open_file, parse_dims, tell_saved, threshold
from layerwise._tool.tui.cli.surgeon.fold import folded_here, size_limit
from layerwise._tool.tui.cli.values import parse_map

_FOLDING = ("num_passes", "partitioning", "no_fold_shapes", "no_per_pass_shape_inference", "fold_size_threshold")


def fill_sanitize(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [OPTIONS] -o CLEAN.onnx"
    parser.epilog = (
        "By default a tensor is folded if it has at most 256 bytes, or no more than the weights that are not needed\n"
        "any more then, so that a model does not grow. Polygraphy's way is a large --fold-size-threshold (100G)."
    )
    add_model(parser)
    group = parser.add_argument_group("Input shapes")
    group.add_argument("--override-input-shapes", "--override-inputs", nargs="+", action="extend", default=[],
                       metavar="NAME:[DIMS]", help="give inputs other shapes; names are dynamic lengths")  # fmt: skip
    _add_folding(parser)
    group = parser.add_argument_group("Cleaning up")
    group.add_argument("--cleanup", action="store_true", help="leave out what no output needs")
    group.add_argument("--toposort", action="store_true", help="put nodes in an order in which they can run")
    _add_outputs(parser)
    _add_shapes(parser)
    add(parser, DATA)
    add_saving(parser)


def _add_folding(parser: Parser) -> None:
    group = parser.add_argument_group("Constant folding")
    group.add_argument("--fold-constants", action="store_true", help="compute what does not depend on the inputs")
    group.add_argument("--num-passes", "--num-const-fold-passes", type=int, metavar="N", dest="num_passes",
                       help="passes at most; until nothing changes by default")  # fmt: skip
    group.add_argument("--partitioning", choices=("basic", "recursive"),
                       help="what cannot be computed stays with all it needs (basic), or alone")  # fmt: skip
    group.add_argument("--no-fold-shapes", action="store_true", help="leave Shape nodes and what they feed")
    group.add_argument("--no-per-pass-shape-inference", action="store_true", help="infer shapes once, at the end")
    group.add_argument("--fold-size-threshold", metavar="SIZE", help="fold no tensor of more bytes (16M)")


def _add_outputs(parser: Parser) -> None:
    group = parser.add_argument_group("Changing the model first")
    group.add_argument("--outputs", nargs="+", action="extend", metavar="NAME", help="its outputs: names, globs, '*'")
    group.add_argument("--exclude-outputs", nargs="+", action="extend", default=[], metavar="NAME",
                       help="leave these out: names or globs")  # fmt: skip
    group.add_argument("--outputs-by-type", nargs="+", action="extend", default=[], metavar="OP",
                       help="mark the outputs of all nodes of these types too")  # fmt: skip
    group.add_argument("--set-unbounded-dds-upper-bound", nargs="+", action="extend", default=[],
                       metavar="[NAME:]SIZE", help="limit tensors that size others without a limit")  # fmt: skip


def _add_shapes(parser: Parser) -> None:
    group = parser.add_argument_group("Shape inference")
    group.add_argument("--no-shape-inference", action="store_true", help="infer no shapes")
    group.add_argument("--force-fallback-shape-inference", action="store_true",
                       help="take shapes and types from a run; dynamic dimensions become static")  # fmt: skip
    group.add_argument("--no-onnxruntime-shape-inference", action="store_true",
                       help="accepted; shapes are inferred by onnx alone")  # fmt: skip


def run_sanitize(args: Namespace, log: Log) -> int:
    """Run the job; 0 if the new model is there."""
    if not args.fold_constants:
        for name in _FOLDING:
            if getattr(args, name):
                log.warning(
                    f"Argument: '--{name.replace('_', '-')}' will be ignored since constant folding is not enabled.\n"
                    "This argument is only valid when the `--fold-constants` option is provided."
                )
    with open_file(args, log) as file:
        if folded_here(args, log, file):
            return 0
    job = job_spec("sanitize", job_params(args), args.words, title=("surgeon", "sanitize", args.model_file))
    code = run_shown(job, log, partial(say_message, log=log))
    if code == 0:
        log.info(f"Saving ONNX model to: {shown(args.output)}")
        tell_saved(args, log)
    return code


def job_params(args: Namespace) -> dict[str, Any]:
    """A SanitizeJob, as JSON."""
    import msgspec

    from layerwise._tool.tui.cli.request.to_spec import given

    feeds = given(Namespace(**{**vars(args), "input_shapes": [], "fp_to_fp16": False}), [("onnxrt", None)]).feeds
    return {
        "model": args.model_file,
        "output": args.output,
        "external_data_dir": args.external_data_dir,
        "ignore_external_data": args.ignore_external_data,
        "external": args.save_external_data,
        "external_each": args.no_save_all_tensors_to_one_file,
        "external_threshold": threshold(args),
        "overwrite": True,
        "what": {
            "outputs": ["*"] if args.outputs in (["mark", "all"], ["mark all"]) else args.outputs,
            "by_type": args.outputs_by_type,
            "exclude": args.exclude_outputs,
            "bounds": parse_map(args.set_unbounded_dds_upper_bound, int, "an upper bound"),
            "shapes": dict(map(_shape, args.override_input_shapes)),
            "infer": not args.no_shape_inference,
            "fallback": args.force_fallback_shape_inference,
            "feeds": msgspec.to_builtins(feeds),
            "cleanup": args.cleanup,
            "toposort": args.toposort,
            "fold": args.fold_constants,
            "passes": args.num_passes,
            "partitioning": args.partitioning,
            "fold_shapes": not args.no_fold_shapes,
            "per_pass_inference": not args.no_per_pass_shape_inference,
            "threshold": size_limit(args),
        },
    }


def _shape(item: str) -> tuple[str, list[int | str | None]]:
    start = item.rfind(":[")
    if start < 1 or not item.rstrip().endswith("]"):
        raise UsageError(f"{shown(item, 120)!r} is not a shape; write NAME:[1,3,224,224]")
    return item[:start], parse_dims(item[start + 1 :], item)
