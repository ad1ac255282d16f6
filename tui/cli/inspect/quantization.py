"""`layerwise inspect quantization`: what a model holds in few bits, against its float original."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.common import ONNX
from layerwise._tool.tui.cli.options.model import MODEL_FILE
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

_SHOWN = 20


def fill_quantization(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [--reference-model FLOAT.onnx] [OPTIONS]"
    parser.epilog = (
        "Every tensor in few bits (Q/DQ, QLinear operators, dynamic, MatMulNBits): type, scale, zero point, share\n"
        "clipped, dead channels, and in dB what is lost beside what the format itself loses. Weights are held against\n"
        "the float model's; activations against its tensors, which `layerwise run FLOAT.onnx --onnxrt --mark-all\n"
        "--save-outputs layers.json` saves, and so is a TensorRT calibration cache. `layerwise debug locate` does it\n"
        "all while it runs both models. Exit code: 0, 1 where something is not as its format explains, 2 an error."
    )
    add(parser, MODEL_FILE)
    group = parser.add_argument_group("What it is held against")
    parser.own(group, "--reference-model", metavar="FLOAT.onnx", help="the float original")
    parser.own(group, "--load-outputs", metavar="FILE", help="saved tensors of the float original")
    parser.own(group, "--calibration-cache", metavar="FILE", help="a TensorRT calibration cache: a scale a tensor")
    parser.own(group, "--all", action="store_true", help=f"every tensor, not the worst {_SHOWN} alone")
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    add(parser, ONNX)


def run_quantization(args: Namespace, log: Log) -> int:
    """Print what is quantised and how well; 1 where something is wrong."""
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.debugtools.compare.quantised.files import FileReview

    try:
        with ExitStack() as stack:
            model = stack.enter_context(ModelFile(args.model_file, args.external_data_dir))
            other = None if args.reference_model is None else stack.enter_context(ModelFile(args.reference_model))
            cache = None if args.calibration_cache is None else Path(args.calibration_cache)
            review = FileReview(model, other).review(_tensors(args.load_outputs), cache)
    except LayerwiseError as error:
        log.fatal(shown_lines(error))
        return 2
    found = review.result
    if args.json:
        rows = {"tensors": review.rows, "cache": review.cache, "unread": review.unread, "text": found.text}
        print_json({"command": args.command, "exit_code": int(bool(found.wrong)), **msgspec.to_builtins(rows)})
        return int(bool(found.wrong))
    for text in review.unread:
        log.warning(f"not looked at: {shown(text, 300)}")
    if not found.tensors:
        log.info("Nothing in the model is quantised.")
        return 0
    (log.error if found.wrong else log.finish)(shown(found.text, 1000))
    if log.shows(INFO):
        for line in _lines(review.ranked, everything=args.all):
            log.continued(f"    {line}")
    return int(bool(found.wrong))


def _tensors(path: str | None) -> Iterator[Mapping[str, Any]]:
    if path is None:
        return
    from layerwise._tool.backends.results.io import load_results

    for _, iterations in load_results(path).items():
        for each in iterations:
            yield each.outputs


def _lines(rows: "list[QuantisedRow]", *, everything: bool) -> Iterator[str]:
    from layerwise._tool.debugtools.compare.quantised.told import held_text

    told = rows if everything else rows[:_SHOWN]
    for row in told:
        place = f"#{row.i} {shown(row.op, 40)} " if row.i >= 0 else ""
        mark = f"{row.word.upper()}: " if row.word else ""
        yield f"{mark}{place}{row.role} {shown(row.tensor, 100)}: {held_text(row)}"
    if len(told) < len(rows):
        yield f"and {len(rows) - len(told)} more (--all)"
