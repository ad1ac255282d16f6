"""`layerwise plugin list|match|replace`: what plugins can take the place of, by Polygraphy's pattern files."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import MissingDependency
from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MARKING, NEEDED_MODEL, ONNX, means_all
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.submit import job_spec, run_here, say_message

_EPILOG = (
    "DIR holds a folder a plugin with a pattern.py in it: get_plugin_metadata() and get_matching_subgraphs(graph), or\n"
    "get_plugin_pattern(), which gives an onnx_graphsurgeon.GraphPattern; replace_with_plugin(…) if it has one.\n"
    "These scripts are run, in a process of their own."
)


_NOT_TUNED = (
    "plugin autotune is not offered: it times engines of the model with and without each plugin, which needs TensorRT, "
    "the plugins' libraries and a GPU. `layerwise plugin match` and `plugin replace` put plugins in; `layerwise bench` "
    "times both models."
)


def fill_list(parser: Parser) -> None:
    _add_common(parser)
    _add_choice(parser)


def fill_match(parser: Parser) -> None:
    _add_common(parser)
    _add_choice(parser)
    parser.add_argument("-o", "--output", metavar="PATH", help="config.yaml beside the model by default")


def fill_replace(parser: Parser) -> None:
    _add_common(parser)
    parser.add_argument("-o", "--output", metavar="PATH", help="replaced.onnx beside the model by default")
    parser.add_argument("--config", metavar="PATH", help="config.yaml beside the model by default")


def fill_autotune(parser: Parser) -> None:
    _add_common(parser)
    _add_choice(parser)
    for flag in ("--python-plugins", "--plugin-libraries"):
        parser.add_argument(flag, nargs="+", metavar="FILE")
    for flag in ("-o/--output", "--report", "--autotune-mode", "--max-combinations", "--threshold", "--timing-cache",
                 "--load-config-yaml"):  # fmt: skip
        parser.add_argument(*flag.split("/"), metavar="VALUE")
    parser.add_argument("--save-config-yaml", nargs="?", metavar="PATH")
    for flag in ("--no-timing-cache", "--skip-autotuning"):
        parser.add_argument(flag, action="store_true")


def _add_common(parser: Parser) -> None:
    parser.epilog = _EPILOG
    add(parser, NEEDED_MODEL)
    parser.add_argument("--plugin-dir", required=True, metavar="DIR", help="the folder of the plugins")
    options.add_overwrite(parser, parser)
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    add(parser, MARKING, DATA, ONNX)


def _add_choice(parser: Parser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--include", nargs="+", default=[], metavar="NAME", help="these plugins alone")
    choice.add_argument("--exclude", nargs="+", default=[], metavar="NAME", help="all but these")


def run_list(args: Namespace, log: Log) -> int:
    """Say which plugins match, and how often."""
    return _run("list", args, log, include=args.include, exclude=args.exclude)


def run_match(args: Namespace, log: Log) -> int:
    """Write where which plugins match."""
    return _run("match", args, log, include=args.include, exclude=args.exclude, config=_beside(args, args.output))


def run_replace(args: Namespace, log: Log) -> int:
    """Put the plugins' nodes into the model."""
    output = args.output or _beside(args, None, "replaced.onnx")
    return _run("replace", args, log, config=_beside(args, args.config), output=output)


def _beside(args: Namespace, given: str | None, name: str = "config.yaml") -> str:
    """The path given, else the file beside the model."""
    return given or str(Path(getattr(args, "named", args.model_file)).absolute().with_name(name))


def run_autotune(args: Namespace, log: Log) -> int:
    """Timing plugins needs TensorRT."""
    raise MissingDependency(_NOT_TUNED)


def _run(what: str, args: Namespace, log: Log, **more: Any) -> int:
    given = {
        "model": args.model_file, "plugins": args.plugin_dir, "external_data_dir": args.external_data_dir,
        "ignore_external_data": args.ignore_external_data, "by_type": args.onnx_outputs_by_type or [],
        "outputs": ["*"] if means_all(args.onnx_outputs or []) else args.onnx_outputs,
        "outputs_left_out": args.onnx_exclude_outputs,
    }  # fmt: skip
    read = [args.model_file, more.get("config") if what == "replace" else None]
    written = more.get("output") if what == "replace" else more.get("config")
    params = {"what": what, **given, "overwrite": replaces(written, read, args.overwrite), **more}
    job = job_spec("plugins", params, args.words)
    collector = Collector()
    if not args.json:
        return run_here(job, lambda event: say_message(event, log), log)
    code = run_here(job, collector.event, log)
    document = collector.document(args.command, code)
    print_json({**document, "rows": collector.tables.get("plugins", [])})
    return code
