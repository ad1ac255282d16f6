"""`template shard-hints` and `multi-device shard`: Polygraphy's options, and why nothing is behind them."""

from argparse import Namespace

from layerwise._tool.backends.errors import MissingDependency
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.parser import Parser

_REFUSED = "Models are not split over several GPUs here: Layerwise looks for faults. polygraphy {} does it."
_NAMED = (
    "--root", "--gpus", "--i-idx", "--o-idx", "--k-idx", "--v-idx", "--i-rank", "--o-rank", "--kv-rank", "--nb-rank",
)  # fmt: skip
_LISTS = ("--groups", "--q-shuffle", "--k-shuffle", "--v-shuffle")
_CHOICES = {
    "--parallelism": ("CP", "TP"), "--cp-type": ("native", "fused"), "--attention-pattern": ("0", "1"),
    "--reduce-op": ("sum", "prod", "min", "max", "avg"),
}  # fmt: skip


def fill_shard_hints(parser: Parser) -> None:
    _fill(parser)


def fill_shard(parser: Parser) -> None:
    _fill(parser)
    parser.add_argument("-s", "--hint", metavar="FILE")
    parser.add_argument("--one-shot", action="store_true")
    options.add_external_data(parser, parser)


def _fill(parser: Parser) -> None:
    add(parser, MODEL, ONNX)
    parser.add_argument("-o", "--output", metavar="PATH")
    for flag in _NAMED:
        parser.add_argument(flag, metavar="N")
    for flag in _LISTS:
        parser.add_argument(flag, nargs="*", metavar="N")
    for flag, choices in _CHOICES.items():
        parser.add_argument(flag, choices=choices)
    for flag in ("--no-suggest-io", "--is-causal"):
        parser.add_argument(flag, action="store_true")


def run_shard_hints(args: Namespace, log: Log) -> int:
    """Say that it is not offered."""
    raise MissingDependency(_REFUSED.format("template shard-hints"))


def run_shard(args: Namespace, log: Log) -> int:
    """Say that it is not offered."""
    raise MissingDependency(_REFUSED.format("multi-device shard"))
