"""`layerwise baseline accept` and `layerwise baseline check`."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.options import TorchOptions
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.debugtools.baseline.file import load_baseline
from layerwise._tool.debugtools.baseline.request import names_models, read_request, with_models
from layerwise._tool.debugtools.baseline.spec import BaselineSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.baseline.report import BaselineReport, document
from layerwise._tool.tui.cli.options.common import MARKING, MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS
from layerwise._tool.tui.cli.options.option import add, filled, read
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_REQUEST = (RUNNERS, MODEL, MARKING, DATA, INFERENCE, COMPARE, THRESHOLDS, ONNXRT, TORCH, ONNX, JOB, TRT)


def fill_accept(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL RUNNERS… [--reference-model GOOD.onnx | --load-outputs GOLDEN] -o FILE [OPTIONS]"
    parser.epilog = (
        "layerwise baseline accept FP16.onnx --onnxrt --reference-model FP32.onnx -o fp16.baseline\n"
        "layerwise baseline accept M.onnx --onnxrt --onnx --load-inputs inputs.npz -o m.baseline\n\n"
        "The file keeps the error of every layer, with versions, inputs and settings; it belongs in the repository.\n"
        "Exit code: 0 it was written, 1 the comparison does not run, 2 wrong usage, 130 interrupted."
    )
    group = parser.add_argument_group("Baseline")
    parser.own(group, "-o", "--output", metavar="FILE", required=True, help="the file that keeps the errors")
    add(parser, *_REQUEST)


def fill_check(parser: Parser) -> None:
    parser.usage = "%(prog)s FILE [MODEL] [--reference-model GOOD.onnx] [--update] [OPTIONS]"
    parser.epilog = (
        "layerwise baseline check fp16.baseline\n"
        "layerwise baseline check fp16.baseline NEW_FP16.onnx\n"
        "layerwise baseline check fp16.baseline --update\n\n"
        "The comparison that the file keeps is run again, with --threads if given. With runners, it is the one that\n"
        "is given: it must have the settings of the file's.\n"
        "Exit code: 0 no layer has grown beyond its rounding, 1 one has, or an output fails that passed, 2 wrong\n"
        "usage, 130 interrupted."
    )
    parser.add_argument("file", metavar="FILE", help="written by `layerwise baseline accept`")
    group = parser.add_argument_group("Baseline")
    parser.own(group, "--update", action="store_true", help="write the errors of now to the file, grown or not")
    parser.own(
        group, "--repeat", type=repetitions, default=None, metavar="auto|N",
        help="runs of a comparison whose layers are near their bounds: auto (the default) repeats until it is sure "
        "that it is no chance; 0 judges by the first",
    )  # fmt: skip
    add(parser, *_REQUEST)


def repetitions(text: str) -> int | None:
    """How often to repeat; None for `auto`. ValueError for what is no number from 0 to 1000."""
    if text == "auto":
        return None
    number = int(text)
    if not 0 <= number <= 1000:
        raise ValueError(text)
    return number


def run_accept(args: Namespace, log: Log) -> int:
    """Run the comparison and keep its errors; the exit code."""
    _refuse_script(args)
    spec = BaselineSpec(compare=to_request(args).spec, output=_path(args.output))
    return run_as_asked(_job(spec, args), args, log, lambda: BaselineReport(log).event, document)


def run_check(args: Namespace, log: Log) -> int:
    """Run the comparison again and hold its errors against the file; the exit code."""
    _refuse_script(args)
    path = _path(args.file)
    spec = BaselineSpec(
        compare=to_compare(args, Path(path)), file=path, output=path if args.update else None, repeat=args.repeat
    )
    return run_as_asked(_job(spec, args), args, log, lambda: BaselineReport(log).event, document)


def to_compare(args: Namespace, file: Path) -> CompareSpec:
    """The comparison to run: the one of the command line, or the file's with the models that are named.

    UsageError for options that need runners; BadFile as `load_baseline`.
    """
    kept = read_request(load_baseline(file).request, file)
    if args.runners or args.load_outputs:
        return to_request(args).spec
    alone = Namespace(**{**vars(args), "reference_model": None})
    asked = to_request(alone, bare=True).spec
    plain = CompareSpec(model=asked.model, statistics=asked.statistics, memory_budget=asked.memory_budget)
    if not names_models(kept):
        raise UsageError(
            f"{shown(str(file), 200)} does not say where its models and inputs are, as one that a test made: run the "
            "test, or give the whole comparison, runners and inputs too"
        )
    threads = args.threads
    if asked != plain or _of_runners(Namespace(**{**vars(args), "threads": None})):
        raise UsageError(
            f"{shown(str(file), 200)} keeps the comparison: leave its options out, or give all of it, runners too"
        )
    given = with_models(kept, asked.model, args.reference_model)
    runners = [
        msgspec.structs.replace(runner, threads=threads or runner.threads) if runner.kind == "onnxrt" else runner
        for runner in given.runners
    ]
    return msgspec.structs.replace(
        given, runners=runners, memory_budget=asked.memory_budget or kept.memory_budget
    )  # fmt: skip


def _of_runners(args: Namespace) -> bool:
    """Whether options of runners are given."""
    onnxrt, torch = RunnerSpec(kind="onnxrt"), TorchOptions()
    return (
        filled(onnxrt, read((ONNXRT,), args)) != onnxrt
        or filled(torch, read((TORCH,), args)) != torch
        or trt_options(args) != TrtOptions()
    )


def _refuse_script(args: Namespace) -> None:
    if args.gen_script:
        raise UsageError("--gen-script writes comparisons only: use `layerwise run`")


def _path(text: str) -> str:
    return str(current_folder() / text)


def _job(spec: BaselineSpec, args: Namespace) -> "JobSpec":
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(spec.compare.runners, args.gpus)
    return job_spec("baseline", msgspec.to_builtins(spec), args.words, timeout, gpus)
