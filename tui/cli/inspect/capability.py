"""`layerwise inspect capability`: what TensorRT's parser takes of a model, and why not the rest."""

from argparse import Namespace
from functools import partial
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.engines.capability.rows import PartRow
from layerwise._tool.debugtools.engines.capability.spec import CapabilitySpec
from layerwise._tool.tui.cli.json_output import Collector, print_json
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import ONNX
from layerwise._tool.tui.cli.options.model import MODEL_FILE
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.trt import TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.progress import run_shown
from layerwise._tool.tui.cli.request.runners import trt_options
from layerwise._tool.tui.cli.request.to_spec import given, wants_engine
from layerwise._tool.tui.cli.submit import job_spec, run_here, say_message

FOLDER = "polygraphy_capability_dumps"


def fill_capability(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [--with-partitioning] [-o FOLDER] [OPTIONS]"
    parser.epilog = (
        "Where the parser refuses the model, the summary goes to FOLDER/results.txt and each run of nodes that it\n"
        "takes, or does not, to FOLDER/supported_subgraph-nodes-FIRST-LAST.onnx or unsupported_….onnx.\n"
        "Exit code: 0 answered, 1 it cannot be asked, 2 wrong usage, 130 interrupted."
    )
    add(parser, MODEL_FILE)
    group = parser.add_argument_group("Parts")
    group.add_argument("--with-partitioning", action="store_true",
                       help="ask again for the parts that are not taken, alone, and table them by reason")  # fmt: skip
    group.add_argument("-o", "--output", metavar="FOLDER", default=FOLDER, help=f"where results go ({FOLDER})")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    options.add_external_data(parser, group)
    add(parser, ONNX, TRT)


def run_capability(args: Namespace, log: Log) -> int:
    """Ask TensorRT; 0 if it could be asked, whatever it said."""
    spec = to_capability(args)
    job = job_spec("capability", msgspec.to_builtins(spec), args.words, gpus=trt_gpus())
    collector = Collector()
    if args.json:
        code = run_here(job, collector.event, log)
        print_json(collector.result or collector.document(args.command, code))
        return code
    code = run_shown(job, log, collector.event, partial(say_message, log=log))
    if collector.result:
        _tell(collector.result, log)
    return code


def _tell(result: dict[str, Any], log: Log) -> None:
    if result["supported"]:
        log.info("Graph is fully supported by TensorRT; Will not generate subgraphs.")
        return
    log.info(shown_lines(result["summary"]))
    parts = msgspec.convert(result["parts"], list[PartRow])
    for part in parts:
        what = "supported" if part.supported else "not supported"
        log.info(f"{shown(part.file, 300)}: {part.nodes} nodes, {what}")
    log.info(f"Summary written to {shown(result['results'], 300)}")
    if result["largest"]:
        best = next(part for part in parts if part.file == result["largest"])
        log.info(f"The largest part that TensorRT takes: {shown(best.file, 300)} ({best.nodes} of "
                 f"{sum(part.nodes for part in parts)} nodes)")  # fmt: skip


def to_capability(args: Namespace) -> CapabilitySpec:
    """What parsed options of `inspect capability` ask for. UsageError for what does not fit."""
    if wants_engine(args):
        raise UsageError(f"{shown(args.model_file, 200)} is taken for a TensorRT engine or network script: ONNX models "
                         "are asked about")  # fmt: skip
    request = given(args, [("onnxrt", None)])
    return CapabilitySpec(
        model=args.model_file,
        folder=args.output,
        options=trt_options(args).network,
        model_options=request.model_options,
        deep=args.with_partitioning,
        external=args.save_external_data is not None,
        verbose=bool(args.verbose or args.extra_verbose),
    )
