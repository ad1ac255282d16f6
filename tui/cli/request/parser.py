"""The options of `layerwise run` and its parser."""

from argparse import Namespace

from layerwise._tool.tui.cli.options.common import MARKING, MODEL, ONNX, RUNNERS, SAVING, compared
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS, TRUTH
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.options.option import add, unset
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import TENSORFLOW, TRT
from layerwise._tool.tui.cli.parser import Parser

RUN = (
    RUNNERS, MODEL, MARKING, DATA, INFERENCE, COMPARE, TRUTH, THRESHOLDS, ONNXRT, TORCH, ONNX, SAVING, JOB, TRT,
    TENSORFLOW,
)  # fmt: skip
"""The groups of `run`, in the order of its help."""
COMPARED = tuple(group for group in RUN if group.plain is compared)
"""Those of them whose fields are in a CompareSpec."""


def fill(parser: Parser) -> None:
    """Add all options of `run`."""
    parser.usage = "%(prog)s [MODEL] RUNNERS… [OPTIONS]"
    parser.epilog = "Exit code: 0 all outputs matched, 1 they did not, 2 wrong usage, 130 interrupted."
    add(parser, *RUN)


def parser(prog: str = "layerwise run") -> Parser:
    """A parser that can parse what `tui.cli.request.line.command_line` writes after its first two words."""
    built = Parser(prog)
    add(built, LOGGING)
    fill(built)
    return built


def completed(args: Namespace) -> Namespace:
    """The options of a command that has some of those of `run`, the others unset."""
    return Namespace(**{**unset(*RUN), **vars(args)})
