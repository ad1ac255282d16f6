"""`layerwise debug locate`: which node is wrong, from one pass over both sides."""

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.log import Log
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.tui.cli import values
from layerwise._tool.tui.cli.debug.locate_report import LocateReport, document
from layerwise._tool.tui.cli.options.common import MODEL, ONNX, RUNNERS
from layerwise._tool.tui.cli.options.compare import COMPARE, THRESHOLDS, TRUTH
from layerwise._tool.tui.cli.options.option import add, options_of
from layerwise._tool.tui.cli.options.run import DATA, INFERENCE, JOB, ONNXRT
from layerwise._tool.tui.cli.options.torch import TORCH
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_as_asked
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.request.parser import COMPARED
from layerwise._tool.tui.cli.request.to_spec import to_request
from layerwise._tool.tui.cli.submit import job_spec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec

_UNUSED = (
    "postprocess", "postprocess_script", "metrics", "compare_script", "check_average", "fail_fast", "validate",
    "warm_up", "sequential", "save_inputs", "save_input_blob", "save_outputs", "save_accuracy", "save_heatmaps",
    "save_error_plots",
)  # fmt: skip


def fill_locate(parser: Parser) -> None:
    parser.usage = "%(prog)s SUSPECT.onnx RUNNERS… [--reference-model GOOD.onnx | --load-outputs golden.json] [OPTIONS]"
    parser.epilog = (
        "layerwise debug locate NEW.onnx --onnxrt --reference-model GOOD.onnx\n"
        "layerwise debug locate M.onnx --runner onnxrt,providers=cuda --onnxrt --json\n"
        "layerwise debug locate M.onnx --onnxrt --load-inputs inputs.json --load-outputs golden.json\n\n"
        "The first side is the suspect, the second the reference.\n"
        "Exit code: 0 suspects were found, or the sides agree, 1 they differ and no node explains it, or no output\n"
        "was compared, 2 wrong usage, 130 interrupted."
    )
    group = parser.add_argument_group("Locating")
    parser.own(group, "--top", type=int, default=10, metavar="N", help="how many suspects are told; 10")
    parser.own(group, "--bodies", action="store_true", help="look into If, Loop and Scan bodies that are suspected")
    parser.own(
        group, "--observe", choices=("auto", "executed", "every"), default="auto",
        help="every: the graph as it is; executed: as onnxruntime optimised it, or as TensorRT's engine runs; auto: "
        "executed where only the optimisation differs, or where nothing else explains that the outputs do",
    )  # fmt: skip
    add(parser, RUNNERS, MODEL, DATA, INFERENCE, COMPARE, TRUTH, THRESHOLDS, ONNXRT, TORCH, ONNX, JOB, TRT)


def run_locate(args: Namespace, log: Log) -> int:
    """Run the job that `args` describe and print the suspects; the exit code."""
    spec = to_locate(args)
    for option in _without_effect(spec.compare):
        log.warning(f"{option} has no effect on locating")
    job = _job(spec, args)
    return run_as_asked(job, args, log, lambda: LocateReport(log, spec).event, document)


def to_locate(args: Namespace) -> LocateSpec:
    """The LocateSpec of parsed options. UsageError for what does not fit together."""
    if args.top < 1:
        raise UsageError("--top must be 1 or more")
    if args.gen_script:
        raise UsageError("--gen-script writes comparisons only: use `layerwise run`")
    compare = msgspec.structs.replace(to_request(args).spec, statistics=bool(args.statistics))
    return LocateSpec(compare=compare, bodies=args.bodies, top=args.top)


def _without_effect(spec: CompareSpec) -> list[str]:
    """Options of `run` that are set and that locating does not look at."""
    plain = CompareSpec()
    differing = [field for field in _UNUSED if getattr(spec, field) != getattr(plain, field)]
    return [option.flags[0] for option in options_of(*COMPARED) if option.field in differing]


def locate_line(spec: LocateSpec) -> list[str]:
    """The argv of `layerwise debug locate` that gives `spec` again."""
    own = [
        *(["--statistics"] if spec.compare.statistics else []),
        *(["--bodies"] if spec.bodies else []),
        *(["--top", str(spec.top)] if spec.top != 10 else []),
    ]
    unasked = msgspec.structs.replace(spec.compare, statistics=True)
    return ["layerwise", "debug", "locate", *command_line(unasked)[2:], *own]


def _job(spec: LocateSpec, args: Namespace) -> "JobSpec":
    timeout = values.parse_duration(args.timeout) if args.timeout else None
    gpus = gpus_for(spec.compare.runners, args.gpus)
    return job_spec("locate", msgspec.to_builtins(spec), args.words, timeout, gpus)
