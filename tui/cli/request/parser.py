"""The parser of `layerwise run`."""

from layerwise._tool.tui.cli.options import common as options
from layerwise._tool.tui.cli.options import compare as options_compare
from layerwise._tool.tui.cli.options import run as options_run
from layerwise._tool.tui.cli.options import trt as options_trt
from layerwise._tool.tui.cli.parser import Parser


def fill(parser: Parser) -> None:
    """Add all options of `run`; the groups appear in help in this order."""
    parser.usage = "%(prog)s [MODEL] RUNNERS… [OPTIONS]"
    parser.epilog = "Exit code: 0 all outputs matched, 1 they did not, 2 wrong usage, 130 interrupted."
    options.add_runners(parser)
    options.add_model(parser)
    options.add_marking(parser)
    options_run.add_data(parser)
    options_run.add_inference(parser)
    options_compare.add_compare(parser)
    options_run.add_onnxrt(parser)
    options.add_onnx(parser)
    options.add_saving(parser)
    options_run.add_job(parser)
    options_trt.add_trt(parser)
    options_trt.add_tensorflow(parser)


def parser(prog: str = "layerwise run") -> Parser:
    """A parser that can parse what `tui.cli.request.line.command_line` writes after its first two words."""
    built = Parser(prog)
    options.add_logging(built)
    fill(built)
    return built
