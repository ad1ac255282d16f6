"""`layerwise inspect model` on engines, network scripts and, with `--convert-to trt`, on ONNX models."""

import shlex
from argparse import Namespace
from typing import Any

import msgspec

from backends.errors import UsageError
from debugtools.inspect.action import InspectSpec
from tui.cli.direct import DirectContext
from tui.cli.json_output import Collector, print_json
from tui.cli.lint import given
from tui.cli.log import LEVELS, WARNING, Log, shown_lines
from tui.cli.progress import progress
from tui.cli.run import trt_gpus
from tui.cli.submit import job_spec, run_here
from tui.cli.to_spec import model_path, wants_engine
from tui.cli.to_trt import trt_options

_ONNX_ONLY = {"list_unbounded_dds": "--list-unbounded-dds", "visual": "--visual", "save_visual": "--visual"}


def describe_trt(args: Namespace, show: list[str], log: Log) -> int:
    """Describe the engine or network that `args` names; the exit code."""
    words = shlex.split(args.command)
    spec = to_inspect(args, show)
    job = job_spec("inspect_trt", msgspec.to_builtins(spec), shlex.join(words[1:])[:200], words, gpus=trt_gpus())
    if args.json:
        return _print_document(job, log)
    out = DirectContext({}, log)
    with progress(log) as told:

        def listen(event: dict[str, Any]) -> None:
            told(event)
            kind, level = event.get("type"), str(event.get("level", event.get("type")))
            if kind == "log" and level == "out":
                out.log(str(event["text"]), "out")
            elif kind in ("log", "warning"):
                log.say(LEVELS.get(level.upper(), WARNING), shown_lines(event.get("text")))

        return run_here(job, listen, log)


def _print_document(job: Any, log: Log) -> int:
    collector = Collector()
    code = run_here(job, collector.event, log)
    if collector.result is not None:
        print_json(collector.result["description"])
    return code


def to_inspect(args: Namespace, show: list[str]) -> InspectSpec:
    """What parsed options of `inspect model` ask for. UsageError for what does not fit engines and networks."""
    for name, flag in _ONNX_ONLY.items():
        if getattr(args, name):
            raise UsageError(f"{flag} is for ONNX models")
    request = given(args, [("trt", None)])
    options = trt_options(_whole(args))
    is_engine = wants_engine(args) and not options.network.function
    for name in ("combine_tensor_info", "nodes_of"):
        if getattr(args, name) and not is_engine:
            raise UsageError(f"--{name.replace('_', '-')} is for engines")
    path = model_path(args)
    return InspectSpec(
        model=None if is_engine else path,
        engine=path if is_engine else None,
        options=options,
        model_options=request.model_options,
        show=show,
        values=args.combine_tensor_info,
        nodes_of=args.nodes_of,
        json=args.json,
        verbose=bool(args.verbose or args.extra_verbose),
    )


def _whole(args: Namespace) -> Namespace:
    """With what `run` alone has, unset: TensorRT's options are read as for a run."""
    from tui.cli.run_parser import parser

    return Namespace(**{**vars(parser().parse_args([])), **vars(args)})
