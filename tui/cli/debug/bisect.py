"""`layerwise debug bisect`: the first node, in topological order, from which on the model fails."""

from argparse import Namespace

from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.searching import run_search
from layerwise._tool.tui.cli.parser import Parser


def fill_bisect(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [SIDES… | --check COMMAND…] [OPTIONS]"
    parser.epilog = (
        "layerwise debug bisect BAD.onnx --reference-model GOOD.onnx --onnxrt\n"
        "layerwise debug bisect M.onnx --flaky 0.2 --check ./build_and_test.sh polygraphy_debug.onnx\n\n"
        + options.EXIT_CODES
    )
    group = parser.add_argument_group("Bisecting")
    group.add_argument("-o", "--output", metavar="FILE", help="where the node found is saved as a model")
    parser.own(
        group, "--flaky", metavar="P[,Q]",
        help="the fault comes and goes: the chance P that a wrong run passes, and Q that a right one fails; or auto",
    )  # fmt: skip
    parser.own(group, "--confidence", type=float, default=0.95, metavar="P", help="of the answer, with --flaky; 0.95")
    options.add_judging(parser)
    options.add_iterating(parser)
    options.add_sides(parser)


def run_bisect(args: Namespace, log: Log) -> int:
    """Bisect; the exit code."""
    return run_search("bisect", args, log)
