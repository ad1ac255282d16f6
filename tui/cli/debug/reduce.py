"""`layerwise debug reduce`: the smallest model that still fails, all independent culprits in one go."""

from argparse import Namespace

from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.searching import run_search
from layerwise._tool.tui.cli.parser import Parser


def fill_reduce(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx -o REDUCED.onnx [SIDES… | --check COMMAND…] [OPTIONS]"
    parser.epilog = (
        "layerwise debug reduce BAD.onnx --reference-model GOOD.onnx --onnxrt -o reduced.onnx\n"
        "layerwise debug reduce M.onnx -o reduced.onnx --check layerwise run polygraphy_debug.onnx --onnxrt --onnx\n"
        "layerwise debug reduce M.onnx -o reduced.onnx        # you answer\n\n" + options.EXIT_CODES
    )
    group = parser.add_argument_group("Reducing")
    group.add_argument("-o", "--output", metavar="FILE", help="the smallest failing model, also while searching")
    group.add_argument(
        "--min-good", "--minimal-good", dest="min_good", metavar="FILE", help="a model close to it that passes"
    )
    one_way = group.add_mutually_exclusive_group()
    one_way.add_argument("--no-reduce-inputs", dest="reduce_inputs", action="store_false", help="outputs only")
    one_way.add_argument("--no-reduce-outputs", dest="reduce_outputs", action="store_false", help="inputs only")
    group.add_argument(
        "--mode", choices=("bisect", "linear", "ddmin"),
        help="ddmin: any subset of the nodes, to 1-minimality, several faults (the default where two sides judge); "
        "bisect, linear: by single cuts, as Polygraphy does (bisect is the default otherwise)",
    )  # fmt: skip
    options.add_judging(parser)
    options.add_iterating(parser)
    options.add_sides(parser)


def run_reduce(args: Namespace, log: Log) -> int:
    """Reduce; the exit code."""
    return run_search("reduce", args, log)
