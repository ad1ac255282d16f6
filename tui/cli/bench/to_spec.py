"""From parsed options of `bench` to a BenchSpec."""

import argparse
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.bench.options import OWN, fill
from layerwise._tool.tui.cli.bench.trtexec import NO_EFFECT
from layerwise._tool.tui.cli.options.logging import LOGGING
from layerwise._tool.tui.cli.options.option import filled, read, unset
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser, without_help
from layerwise._tool.tui.cli.request.to_spec import to_request

_ENGINES = (".engine", ".plan", ".trt")


@dataclass
class BenchRequest:
    """What a command line asks for, what `run` would make of it, and what to tell the user."""

    spec: BenchSpec
    compare: CompareSpec
    notes: list[str] = field(default_factory=list)


def to_bench(args: Namespace) -> BenchRequest:
    """The bench that parsed options describe. Raises UsageError or MissingDependency as `run` does."""
    model = model_of(args)
    build = build_options(args)
    engine = build or model.lower().endswith(_ENGINES) or args.model_option  # trtexec's words mean TensorRT
    runners = args.runners or [("trt" if engine else "onnxrt", None)]
    compare = _as_run(args, model, runners)
    shared = BenchSpec(model=model, model_options=compare.model_options, runners=compare.runners, feeds=compare.feeds)
    spec = filled(shared, read(OWN, args))
    return BenchRequest(spec, compare, list(_notes(args, spec, compare, build)))


def model_of(args: Namespace) -> str:
    """The model, however it is named. UsageError for none, or for two."""
    engines = [given[0] for kind, given in args.runners if kind == "trt" and given]
    named = [name for name in (args.model_file, args.model_option) if name] or engines[:1]
    if not named:
        raise UsageError("What is to be timed? Give a model: layerwise bench MODEL.onnx")
    if len(set(named)) > 1:
        raise UsageError(f"Two models are named, {shown(named[0], 80)} and {shown(named[1], 80)}: give one.")
    return str(named[0])


def build_options(args: Namespace) -> list[str]:
    """TensorRT's options that are given, as typed."""
    given = [name for name, value in unset(TRT).items() if getattr(args, name, value) != value]
    return [f"--{name.replace('_', '-')}" for name in given]


def _as_run(args: Namespace, model: str, runners: list[Any]) -> CompareSpec:
    """What `run` makes of the options that both have."""
    bench = {"model_file": model, "runners": runners, "iterations": None, "warm_up": 0}
    return to_request(Namespace(**{**vars(args), **bench})).spec


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
    """The options of a line without its first two words, for the app. Raises UsageError, which leads to no help."""
    parser = Parser("layerwise bench")
    fill(parser)
    LOGGING.add(parser)
    try:
        found: argparse.Namespace = parser.parse_args(words)
    except UsageError as error:
        raise UsageError(without_help(str(error))) from None
    return found
