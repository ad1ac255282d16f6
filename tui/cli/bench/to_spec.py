"""From parsed options of `bench` to a BenchSpec."""

import argparse
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import gpus_for
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.spec import BenchSpec, ExportSpec, PlanSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.bench.trtexec import NO_EFFECT
from layerwise._tool.tui.cli.options import trt as options_trt
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.parser import parser as run_parser
from layerwise._tool.tui.cli.request.to_spec import to_request

_ENGINES = (".engine", ".plan", ".trt")


@dataclass
class Request:
    """What a command line asks for, what `run` would make of it, and what to tell the user."""

    spec: BenchSpec
    compare: CompareSpec
    notes: list[str] = field(default_factory=list)


def to_bench(args: Namespace) -> Request:
    """The bench that parsed options describe. Raises UsageError or MissingDependency as `run` does."""
    model = model_of(args)
    build = build_options(args)
    runners = args.runners or [("trt" if build or model.lower().endswith(_ENGINES) else "onnxrt", None)]
    compare = _as_run(args, model, runners)
    spec = BenchSpec(
        model=model,
        model_options=compare.model_options,
        runners=compare.runners,
        feeds=compare.feeds,
        raw_inputs=raw_inputs(args.load_raw_inputs),
        plan=PlanSpec(
            warm_up=args.warm_up_time, warm_up_runs=args.warm_up, duration=args.duration, iterations=args.iterations,
            streams=args.streams, idle=args.idle_time,
        ),
        batches=args.batches,
        transfers=args.transfers,
        cuda_graph=args.cuda_graph,
        percentiles=tuple(args.percentile or (90.0, 95.0, 99.0)),
        average_runs=args.avg_runs or (10 if args.verbose else 0),
        profile=args.profile or args.export_profile is not None,
        layers=args.layer_info or args.export_layer_info is not None,
        exports=ExportSpec(
            times=args.export_times, profile=args.export_profile, layers=args.export_layer_info,
            output=args.export_output, report=report_file(args.output),
        ),
        against=args.against,
        skip_inference=args.skip_inference,
    )  # fmt: skip
    return Request(spec, compare, list(_notes(args, spec, compare, build)))


def model_of(args: Namespace) -> str:
    """The model, however it is named. UsageError for none, or for two."""
    engines = [given[0] for kind, given in args.runners if kind == "trt" and given]
    named = [name for name in (args.model_file, args.model_option) if name] or engines[:1]
    if not named:
        raise UsageError("What is to be timed? Give a model: layerwise bench MODEL.onnx")
    if len(set(named)) > 1:
        raise UsageError(f"Two models are named, {shown(named[0], 80)} and {shown(named[1], 80)}: give one.")
    return str(named[0])


def report_file(path: str | None) -> str | None:
    """The file of -o. UsageError unless its name says what it is."""
    if path is not None and Path(path).suffix.lower() not in (".json", ".csv"):
        raise UsageError(f"-o {shown(path, 80)}: the name of a report ends in .json or .csv")
    return path


def raw_inputs(items: list[str]) -> dict[str, str]:
    """`name:file` items; the file is what follows the last colon but that of a name in quotes."""
    found = {}
    for item in items:
        name, colon, path = item.rpartition(":")
        if not (colon and name and path):
            raise UsageError(f"'{shown(item, 80)}': raw inputs are written NAME:FILE")
        found[name.strip("'\"")] = path
    return found


def build_options(args: Namespace) -> list[str]:
    """TensorRT's options that are given, as typed."""
    parser = Parser("trt")
    options_trt.add_trt(parser)
    unset = vars(parser.parse_args([]))
    return [f"--{name.replace('_', '-')}" for name, value in unset.items() if getattr(args, name, value) != value]


def _as_run(args: Namespace, model: str, runners: list[Any]) -> CompareSpec:
    """What `run` makes of the options that both have."""
    unset = vars(run_parser().parse_args([]))
    bench = {"model_file": model, "runners": runners, "iterations": None, "warm_up": 0}
    shared = {name: value for name, value in vars(args).items() if name in unset}
    return to_request(Namespace(**{**unset, **shared, **bench})).spec


def _notes(args: Namespace, spec: BenchSpec, compare: CompareSpec, build: list[str]) -> Iterator[str]:
    for flag in args.no_effect:
        yield f"--{flag} has no effect here: {NO_EFFECT['--' + flag]}."
    if build and all(runner.kind != "trt" for runner in spec.runners):
        yield (
            f"{', '.join(build)}: for TensorRT; the runners here take the model as it is "
            "(`layerwise convert` makes an FP16 or INT8 one)."
        )
    if not spec.transfers and not gpus_for(compare.runners) and all(runner.kind != "trt" for runner in spec.runners):
        yield "--no-data-transfers: on the CPU there are none."


def parsed(words: list[str]) -> Namespace:
    """The options of a line without its first two words, for the app. Raises UsageError."""
    from layerwise._tool.tui.cli.bench.options import fill
    from layerwise._tool.tui.cli.options.common import add_logging

    parser = Parser("layerwise bench")
    fill(parser)
    add_logging(parser)
    found: argparse.Namespace = parser.parse_args(words)
    return found
