"""`layerwise plugin list|match|replace|autotune`: what plugins can take the place of, by Polygraphy's pattern files."""

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.log import Log
from layerwise._tool.debugtools.autotune.spec import AutotuneSpec
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MARKING, NEEDED_MODEL, ONNX, means_all
from layerwise._tool.tui.cli.options.model import EXTERNAL
from layerwise._tool.tui.cli.options.option import Group, Option, add, filled, flag, many, read
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.submit import job_spec, run_here, say_message

_EPILOG = (
    "DIR holds a folder a plugin with a pattern.py in it: get_plugin_metadata() and get_matching_subgraphs(graph), or\n"
    "get_plugin_pattern(), which gives an onnx_graphsurgeon.GraphPattern; replace_with_plugin(…) if it has one.\n"
    "These scripts are run, in a process of their own."
)
_TUNING = Group(
    "Timing on TensorRT",
    Option("-o", "--output", field="output", required=True, metavar="PATH", help="the model with the fastest plugins"),
    many("--python-plugins", field="python_plugins", metavar="FILE", help="scripts that register plugins"),
    many("--plugin-libraries", field="plugin_libraries", metavar="FILE", help="shared libraries that register plugins"),
    Option("--report", field="save_report", metavar="PATH", help="what was timed, as text"),
    Option("--autotune-mode", field="mode", choices=("greedy", "exhaustive"),
           help="greedy: each match once, beside those taken before; exhaustive: all combinations; greedy by default"),
    Option("--max-combinations", field="most", type=int, metavar="N", help="at most these, the model included; 1000"),
    Option("--threshold", field="threshold", type=float, metavar="FRACTION",
           help="exhaustive ends at a combination that is faster than the model by more than this; 0.1"),
    Option("--timing-cache", field="timing_cache", metavar="PATH", help="TensorRT's, read if there and written"),
    Option("--no-timing-cache", field="use_timing_cache", action="store_false", dest="use_timing_cache", default=True,
           help="every build times its tactics anew"),
    Option("--save-config-yaml", field="save_config", nargs="?", const="config.yaml", metavar="PATH",
           help="where the matches go; config.yaml beside the model by default"),
    Option("--load-config-yaml", field="load_config", metavar="PATH", help="these matches; none are searched for"),
    flag("--skip-autotuning", field="match_only", help="matches alone: nothing is built"),
    plain=lambda: AutotuneSpec(model="", plugin_dir="", output=""),
)  # fmt: skip


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
    parser.usage = "%(prog)s MODEL.onnx --plugin-dir DIR -o OUTPUT [OPTIONS]"
    _add_plugins(parser)
    _add_choice(parser)
    add(parser, _TUNING, EXTERNAL, DATA, ONNX)
    parser.epilog = (
        f"{_EPILOG}\nExit code: 0 a faster model is written, 1 there is none, 2 wrong usage, 130 interrupted."
    )


def _add_common(parser: Parser) -> None:
    _add_plugins(parser)
    add(parser, MARKING, DATA, ONNX)


def _add_plugins(parser: Parser) -> None:
    parser.epilog = _EPILOG
    add(parser, NEEDED_MODEL)
    parser.add_argument("--plugin-dir", required=True, metavar="DIR", help="the folder of the plugins")
    options.add_overwrite(parser, parser)
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")


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
    """Write the model with the plugins that make it fastest."""
    compare = given(Namespace(**{**vars(args), "tf32": None}), [("onnxrt", None)])
    named = AutotuneSpec(
        model=args.model_file, plugin_dir=args.plugin_dir, output=args.output, model_options=compare.model_options,
        feeds=compare.feeds, include=args.include, exclude=args.exclude, overwrite=True,
    )  # fmt: skip
    spec = filled(named, read([_TUNING], args))
    if spec.load_config is None:
        spec = msgspec.structs.replace(spec, save_config=_beside(args, spec.save_config))
    inputs = [args.model_file, spec.load_config, *spec.python_plugins, *spec.plugin_libraries]
    for path in (spec.output, spec.save_report, spec.save_config):
        replaces(path, inputs, args.overwrite)
    job = job_spec("autotune", msgspec.to_builtins(spec), args.words, gpus=0 if spec.match_only else trt_gpus())
    return run_as_asked(job, args, log, lambda: partial(say_message, log=log), _timed)


def _timed(collector: Collector, command: str, code: int) -> dict[str, Any]:
    return {
        "command": command, "exit_code": code, "passed": code == 0, "result": collector.result,
        "rows": collector.tables.get("plugins", []), "combinations": collector.tables.get("combinations", []),
        "messages": collector.messages, "error": collector.card,
    }  # fmt: skip


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
