"""`layerwise inspect model` on engines, network scripts and, with `--convert-to trt`, on ONNX models."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.temporary import temporary_folder
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.log import Log
from layerwise._tool.debugtools.engines.inspect.spec import InspectSpec
from layerwise._tool.tui.cli.direct import DirectContext
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.progress import run_shown
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import given, model_path, wants_engine
from layerwise._tool.tui.cli.submit import job_spec, run_here, say_message

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec


def describe_trt(args: Namespace, show: list[str], log: Log) -> int:
    """Describe the engine or network that `args` names, or write its page; the exit code."""
    spec = to_inspect(args, show)
    if args.visual or args.save_visual:
        return _page(spec, args, log)
    job = inspect_job(spec, args)
    if args.json:
        return _print_document(job, log)
    out = DirectContext({}, log)

    def listen(event: Event) -> None:
        if event.get("type") == "log" and event.get("level") == "out":
            out.log(str(event["text"]), "out")
        else:
            say_message(event, log)

    return run_shown(job, log, listen)


def inspect_job(spec: InspectSpec, args: Namespace) -> "JobSpec":
    """The job that describes an engine or network."""
    return job_spec("inspect_trt", msgspec.to_builtins(spec), args.words, gpus=trt_gpus())


def picture_job(args: Namespace) -> "JobSpec":
    """The job of `convert --convert-to onnx-like-trt-network`: the layers as a graph in ONNX's format."""
    if args.output is None:
        raise UsageError("-o/--output is missing: where the layers go")
    replaces(args.output, [args.model_file], args.overwrite)
    unset = {"list_unbounded_dds": False, "combine_tensor_info": None, "nodes_of": None, "opset": None}
    spec = to_inspect(Namespace(**{**vars(args), **unset, "fp_to_fp16": False, "tf32": None}), [])
    return inspect_job(msgspec.structs.replace(spec, picture=args.output), args)


def _page(spec: InspectSpec, args: Namespace, log: Log) -> int:
    """The layers as a web page, as those of an ONNX model."""
    from layerwise._tool.tui.cli.inspect.visual import write_page

    name = Path(spec.engine or spec.model or "").name
    with temporary_folder() as folder:
        picture = str(folder / f"{name}.onnx")
        collector = Collector()
        code = run_here(inspect_job(msgspec.structs.replace(spec, picture=picture), args), collector.event, log)
        if code:
            return code
        whole = {**vars(args), "model_file": picture, "save_visual": args.save_visual or f"{Path(name).stem}.html"}
        return write_page(Namespace(**whole), log)


def _print_document(job: "JobSpec", log: Log) -> int:
    collector = Collector()
    code = run_here(job, collector.event, log)
    if collector.result is not None:
        print_json(collector.result["description"])
    return code


def to_inspect(args: Namespace, show: list[str]) -> InspectSpec:
    """What parsed options of `inspect model` ask for. UsageError for what does not fit engines and networks."""
    if args.list_unbounded_dds:
        raise UsageError("--list-unbounded-dds is for ONNX models")
    request = given(args, [("trt", None)])
    options = trt_options(args)
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
