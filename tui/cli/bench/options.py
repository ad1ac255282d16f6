"""Options of `layerwise bench`; trtexec's are translated into these."""

import argparse
from argparse import Namespace
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.tui.cli.bench.report import TOP
from layerwise._tool.tui.cli.bench.trtexec import translate
from layerwise._tool.tui.cli.options.common import MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.option import Group, Joint, Option, add, flag, many
from layerwise._tool.tui.cli.options.report import REPORT
from layerwise._tool.tui.cli.options.run import DATA, ONNXRT, PLAIN_JOB
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser, count, positive, seconds

EXAMPLES = """examples:
  layerwise bench MODEL.onnx                                            onnxruntime on the CPU
  layerwise bench MODEL.onnx --providers cuda --profile                 on the GPU, with the slowest layers
  layerwise bench MODEL.onnx --onnxrt --runner onnxrt,providers=cuda    two backends in turns, and which is faster
  layerwise bench MODEL.onnx --batches 1 2 4 8 16                       throughput by batch size
  layerwise bench NEW.onnx -o new.json                                  keep the figures, and later:
  layerwise bench NEW.onnx --against new.json                           faster or slower than then?
  layerwise bench times.json --against others.json                      files of trtexec's --exportTimes, or of -o
  layerwise bench profile.json                                          a file of trtexec's --exportProfile
  layerwise bench --onnx=MODEL.onnx --shapes=x:4x3x224x224 --warmUp=500 --duration=10 --infStreams=2 --useCudaGraph \\
      --noDataTransfers --dumpProfile --exportTimes=times.json          trtexec's words

Exit code: 0 timed, 1 it could not be, 2 wrong usage, 130 interrupted."""


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value


def report_file(path: str) -> str:
    """The file of -o. UsageError unless its name says what it is."""
    if Path(path).suffix.lower() not in (".json", ".csv"):
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


def _average(args: Namespace) -> int:
    return int(args.avg_runs or (10 if args.verbose else 0))


def _average_words(spec: BenchSpec) -> list[str]:
    return ["--avg-runs", str(spec.average_runs)] if spec.average_runs else []


def _bench() -> BenchSpec:
    return BenchSpec(model="")


MEASURING = Group(
    "Measuring",
    Option("--model", own=True, dest="model_option", metavar="MODEL", help=argparse.SUPPRESS),
    Option("--warm-up", "--warm-up-runs", field="plan.warm_up_runs", type=count, default=0, metavar="N",
           help="runs before that"),
    Option("--warm-up-time", own=True, field="plan.warm_up", type=seconds, default=0.2, metavar="S",
           help="seconds before that (0.2)"),
    Option("--duration", own=True, field="plan.duration", type=seconds, default=3.0, metavar="S",
           help="seconds to measure at least (3)"),
    Option("--iterations", "--iters", field="plan.iterations", type=positive, default=10, metavar="N",
           help="runs to measure at least (10)"),
    Option("--streams", own=True, field="plan.streams", type=positive, default=1, metavar="N",
           help="runs at the same time"),
    Option("--idle-time", own=True, field="plan.idle", type=seconds, default=0.0, metavar="S",
           help="seconds between two runs"),
    many("--batches", own=True, field="batches", type=positive, metavar="N",
         help="sizes for the inputs' dynamic first dimension, one bench each"),
    flag("--cuda-graph", own=True, field="cuda_graph", help="capture a CUDA graph and replay it"),
    Option("--no-cuda-graph", own=True, dest="cuda_graph", action="store_false", help="do not (the default)"),
    flag("--data-transfers", own=True, dest="transfers", default=True,
         help="copy inputs and outputs in every run (the default)"),
    Option("--no-data-transfers", own=True, field="transfers", dest="transfers", action="store_false",
           help="leave them on the GPU"),
    flag("--skip-inference", own=True, field="skip_inference", help="open (build) only"),
    description="Both a number and a time are reached, where both are given.",
    plain=_bench,
)  # fmt: skip
RESULTS = Group(
    "Results",
    many("--percentile", own=True, field="percentiles", type=_percent, parse=tuple, default=None, metavar="P",
         help="90 95 99"),
    Joint(
        "average_runs",
        Option("--avg-runs", own=True, type=positive, metavar="N", help="with -v, a line of averages per N runs (10)"),
        read=_average, write=_average_words,
    ),
    Joint(
        "profile",
        flag("--profile", own=True, help="time each layer, in runs of their own"),
        read=lambda args: args.profile or args.export_profile is not None,
        write=lambda spec: ["--profile"] if spec.profile and spec.exports.profile is None else [],
    ),
    Joint(
        "layers",
        flag("--layer-info", own=True, help="list the layers that really ran"),
        read=lambda args: args.layer_info or args.export_layer_info is not None,
        write=lambda spec: ["--layer-info"] if spec.layers and spec.exports.layers is None else [],
    ),
    Option("--top", own=True, type=positive, default=TOP, metavar="N", help="layers to print (15)"),
    Option("--against", own=True, field="against", metavar="FILE",
           help="compare with these times: a file of -o or of --export-times"),
    Option("-o", "--output", field="exports.report", dest="output", parse=report_file, metavar="FILE",
           help="everything that was measured"),
    Option("--export-times", own=True, field="exports.times", metavar="FILE", help="each run, in trtexec's form"),
    Option("--export-profile", own=True, field="exports.profile", metavar="FILE",
           help="each layer, in trtexec's form"),
    Option("--export-layer-info", own=True, field="exports.layers", metavar="FILE",
           help="the layers that really ran, in trtexec's form"),
    Option("--export-output", own=True, field="exports.output", metavar="FILE",
           help="the outputs of the last run, in trtexec's form"),
    flag("--json", own=True, help="print one JSON document instead of the report"),
    REPORT,
    Option("--nsys", own=True, nargs="?", const="layerwise-bench", metavar="NAME",
           help="print the command line that records this bench with Nsight Systems, and do nothing"),
    Option("--no-effect", own=True, action="append", default=[], help=argparse.SUPPRESS),
    description="Files whose name ends in .csv are CSV, others are JSON.",
    plain=_bench,
)  # fmt: skip
RAW = Group(
    "Raw inputs",
    many("--load-raw-inputs", own=True, field="raw_inputs", metavar="NAME:FILE", parse=raw_inputs,
         show=lambda found: [f"{name}:{path}" for name, path in found.items()],
         help="raw values of an input, as trtexec's --loadInputs takes them"),
    plain=_bench,
)  # fmt: skip
OWN = (MEASURING, RESULTS, RAW)
"""The groups whose fields are in a BenchSpec."""


def fill(parser: Parser) -> None:
    """Add all options of `bench`."""
    parser.usage = "%(prog)s MODEL [RUNNERS…] [OPTIONS]"
    parser.epilog = EXAMPLES
    parser.translate = translate
    add(parser, MODEL, MEASURING, RESULTS, RUNNERS, ONNXRT)
    DATA.add(parser, without=("--iterations",))
    add(parser, RAW, ONNX, PLAIN_JOB, TRT)
