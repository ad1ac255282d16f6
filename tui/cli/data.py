"""`layerwise data concat|merge`: combining saved inputs and outputs."""

from argparse import Namespace

from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.direct import DirectContext
from layerwise._tool.tui.cli.parser import Parser


def fill_concat(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", help="files or folders of one kind: all inputs, or all outputs")
    parser.add_argument("-o", "--output", required=True, metavar="PATH")


def run_concat(args: Namespace, log: Log) -> int:
    """Join the iterations of several files."""
    from layerwise._tool.backends.saved_data.actions import action_data_concat

    made = action_data_concat(DirectContext({"paths": args.paths, "output": args.output}, log))
    return _tell(made, log)


def fill_merge(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", help="inputs and outputs; for one name, the later file counts")
    parser.add_argument("-o", "--output", required=True, metavar="PATH")


def run_merge(args: Namespace, log: Log) -> int:
    """Make inputs that hold the tensors of all files, to run or debug parts of a model with."""
    from layerwise._tool.backends.saved_data.actions import action_data_merge

    made = action_data_merge(DirectContext({"paths": args.paths, "output": args.output}, log))
    return _tell(made, log)


def _tell(made: dict[str, object], log: Log) -> int:
    log.finish(f"Saved {made['iterations']} iteration(s) to {shown(str(made['output']))}")
    return 0
