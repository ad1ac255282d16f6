"""`layerwise debug repeat`: the same check again and again, its files sorted, its failure rate stated."""

from argparse import Namespace

from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.searching import run_search
from layerwise._tool.tui.cli.parser import Parser


def fill_repeat(parser: Parser) -> None:
    parser.usage = "%(prog)s [MODEL.onnx SIDES…] --until UNTIL [OPTIONS] [--check COMMAND…]"
    parser.epilog = (
        "layerwise debug repeat --until 10 --artifacts replay.json --check ./build.sh\n"
        "layerwise debug repeat --until auto --rate 0.01 --check ./build.sh    # until it is known\n"
        "\nExit code: 0 repeated to the end, 1 not, 2 wrong usage, 130 interrupted."
    )
    group = parser.add_argument_group("Repeating")
    group.add_argument(
        "--until", default="auto", metavar="UNTIL",
        help="good, bad: up to the first one; a number; auto: until it is known if fewer than --rate fail",
    )  # fmt: skip
    parser.own(group, "--rate", type=float, default=0.1, metavar="P", help="the failure rate asked about; 0.1")
    parser.own(group, "--confidence", type=float, default=0.95, metavar="P", help="of the answer; 0.95")
    options.add_judging(parser)
    options.add_iterating(parser, models=False)
    options.add_sides(parser)


def run_repeat(args: Namespace, log: Log) -> int:
    """Repeat; the exit code."""
    return run_search("repeat", args, log)
