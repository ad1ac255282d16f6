"""Options of `layerwise bench`; trtexec's are translated into these."""

import argparse

from layerwise._tool.tui.cli.bench.report import TOP
from layerwise._tool.tui.cli.bench.trtexec import translate
from layerwise._tool.tui.cli.options import common as options
from layerwise._tool.tui.cli.options import run as options_run
from layerwise._tool.tui.cli.options import trt as options_trt
from layerwise._tool.tui.cli.parser import Parser, count, positive

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


def fill(parser: Parser) -> None:
    """Add all options of `bench`."""
    parser.usage = "%(prog)s MODEL [RUNNERS…] [OPTIONS]"
    parser.epilog = EXAMPLES
    parser.translate = translate
    options.add_model(parser)
    _add_measuring(parser)
    _add_output(parser)
    options.add_runners(parser)
    options_run.add_onnxrt(parser)
    _add_inputs(parser)
    options.add_onnx(parser)
    _add_job(parser)
    options_trt.add_trt(parser)


def _add_measuring(parser: Parser) -> None:
    group = parser.add_argument_group("Measuring", "Both a number and a time are reached, where both are given.")
    parser.own(group, "--model", dest="model_option", metavar="MODEL", help=argparse.SUPPRESS)
    group.add_argument("--warm-up", "--warm-up-runs", type=count, default=0, metavar="N", help="runs before that")
    parser.own(group, "--warm-up-time", type=_seconds, default=0.2, metavar="S", help="seconds before that (0.2)")
    parser.own(group, "--duration", type=_seconds, default=3.0, metavar="S", help="seconds to measure at least (3)")
    group.add_argument(
        "--iterations", "--iters", type=positive, default=10, metavar="N", help="runs to measure at least (10)"
    )
    parser.own(group, "--streams", type=positive, default=1, metavar="N", help="runs at the same time")
    parser.own(group, "--idle-time", type=_seconds, default=0.0, metavar="S", help="seconds between two runs")
    parser.own(group, "--batches", type=positive, nargs="+", action="extend", default=[], metavar="N",
               help="sizes for the inputs' dynamic first dimension, one bench each")  # fmt: skip
    parser.own(group, "--cuda-graph", action="store_true", help="capture a CUDA graph and replay it")
    parser.own(group, "--no-cuda-graph", dest="cuda_graph", action="store_false", help="do not (the default)")
    parser.own(group, "--data-transfers", dest="transfers", action="store_true", default=True,
               help="copy inputs and outputs in every run (the default)")  # fmt: skip
    parser.own(group, "--no-data-transfers", dest="transfers", action="store_false", help="leave them on the GPU")
    parser.own(group, "--skip-inference", action="store_true", help="open (build) only")


def _add_output(parser: Parser) -> None:
    group = parser.add_argument_group("Results", "Files whose name ends in .csv are CSV, others are JSON.")
    parser.own(group, "--percentile", type=_percent, nargs="+", action="extend", metavar="P", help="90 95 99")
    parser.own(group, "--avg-runs", type=positive, metavar="N", help="with -v, a line of averages per N runs (10)")
    parser.own(group, "--profile", action="store_true", help="time each layer, in runs of their own")
    parser.own(group, "--layer-info", action="store_true", help="list the layers that really ran")
    parser.own(group, "--top", type=positive, default=TOP, metavar="N", help="layers to print (15)")
    parser.own(group, "--against", metavar="FILE", help="compare with these times: a file of -o or of --export-times")
    group.add_argument("-o", "--output", metavar="FILE", help="everything that was measured")
    parser.own(group, "--export-times", metavar="FILE", help="each run, in trtexec's form")
    parser.own(group, "--export-profile", metavar="FILE", help="each layer, in trtexec's form")
    parser.own(group, "--export-layer-info", metavar="FILE", help="the layers that really ran, in trtexec's form")
    parser.own(group, "--export-output", metavar="FILE", help="the outputs of the last run, in trtexec's form")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the report")
    parser.own(group, "--nsys", nargs="?", const="layerwise-bench", metavar="NAME",
               help="print the command line that records this bench with Nsight Systems, and do nothing")  # fmt: skip
    parser.own(group, "--no-effect", action="append", default=[], help=argparse.SUPPRESS)


def _add_inputs(parser: Parser) -> None:
    options_run.add_data(parser, iterations=False)
    group = parser.add_argument_group("Raw inputs")
    parser.own(group, "--load-raw-inputs", nargs="+", action="extend", default=[], metavar="NAME:FILE",
               help="raw values of an input, as trtexec's --loadInputs takes them")  # fmt: skip


def _add_job(parser: Parser) -> None:
    group = parser.add_argument_group("Job")
    parser.own(group, "--detach", action="store_true", help="start the job, print its number and leave")
    parser.own(group, "--timeout", metavar="DURATION", help="kill the job after this long (90, 15m, 2h)")
    parser.own(group, "--gpus", type=int, metavar="N", help="GPUs to lease; one is leased if a provider needs it")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no length of time")
    return value


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value
