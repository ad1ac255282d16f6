"""`layerwise surgeon extract`: a part of a model as a model of its own."""

import re
import shlex
from argparse import Namespace
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import msgspec

from backends.errors import LayerwiseError
from backends.tensors import TensorInfo, dtype_row
from backends.text import shown
from surgery.extract import End, extract, filled, missing
from surgery.referring import save_referring
from surgery.shapes import with_shapes
from surgery.structure import Structure
from tui.cli import options_run
from tui.cli.lint import given
from tui.cli.log import Log
from tui.cli.parser import Parser
from tui.cli.submit import job_spec, run_here
from tui.cli.surgeon.common import add_model, add_saving, open_file, parse_dims, save_model, tell_saved

_SHAPE = re.compile(r"(?P<name>.+):(?P<shape>auto|\[[^\]]*\]):(?P<dtype>[\w.]+)", re.IGNORECASE | re.DOTALL)
_TYPE = re.compile(r"(?P<name>.+):(?P<dtype>[\w.]+)", re.DOTALL)


def fill_extract(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx --inputs NAME:SHAPE:TYPE … --outputs NAME:TYPE … -o PART.onnx"
    parser.epilog = (
        "NAME alone, or auto for a shape or type, means what the model says of the tensor, else what is inferred,\n"
        "else what a run shows: --inputs x:[1,3,224,224]:float32 y:auto:auto z --outputs w:auto.\n"
        "64 MiB of weights and more are not copied where PART.onnx is beside the model: it refers to the model,\n"
        "which must stay as it is then. --copy-weights makes a file that stands alone."
    )
    add_model(parser)
    group = parser.add_argument_group("The part")
    group.add_argument("--inputs", nargs="*", action="extend", metavar="NAME:SHAPE:TYPE",
                       help="its inputs; the model's if omitted")  # fmt: skip
    group.add_argument("--outputs", nargs="+", action="extend", metavar="NAME:TYPE",
                       help="its outputs; the model's if omitted")  # fmt: skip
    shapes = parser.add_argument_group("Shape inference")
    shapes.add_argument("--shape-inference", "--do-shape-inference", action="store_true",
                        help="infer shapes first (else only where they are needed)")  # fmt: skip
    shapes.add_argument("--force-fallback-shape-inference", action="store_true",
                        help="take shapes and types from a run; dynamic dimensions become static")  # fmt: skip
    shapes.add_argument("--no-onnxruntime-shape-inference", action="store_true",
                        help="accepted; shapes are inferred by onnx alone")  # fmt: skip
    shapes.add_argument("--model-input-shapes", "--model-inputs", dest="input_shapes", nargs="+", action="extend",
                        default=[], metavar="NAME:[DIMS]", help="shapes to run the model with")  # fmt: skip
    options_run.add_data(parser)
    add_saving(parser)
    parser.own(parser, "--copy-weights", action="store_true", help="copy large weights too")


def run_extract(args: Namespace, log: Log) -> int:
    """Cut the part out and save it."""
    with open_file(args, log) as file:
        model = Structure.open(file)
        inputs, outputs = _ends(args.inputs, model, True), _ends(args.outputs, model, False)
        if args.shape_inference:
            model = _inferred(model, log)
        if missing(model, inputs, outputs) and not args.shape_inference:
            log.info("Running shape inference to derive shapes and/or data types for `auto` arguments.")
            model = _inferred(model, log)
        lacking = missing(model, inputs, outputs)
        if lacking or args.force_fallback_shape_inference:
            inputs, outputs = _by_running(args, log, lacking, inputs, outputs)
        _save(args, log, extract(model, inputs, outputs))
    return 0


def _save(args: Namespace, log: Log, part: Structure) -> None:
    if args.copy_weights or args.save_external_data is not None:
        save_model(args, log, part)
        return
    log.info(f"Saving ONNX model to: {shown(args.output)}")
    files = save_referring(part, Path(args.output), overwrite=args.overwrite)
    if files:
        names = ", ".join(shown(str(file)) for file in files)
        log.info(f"Weights were not copied: they are read from {names}, which must stay (--copy-weights copies them)")
    tell_saved(args, log)


def _inferred(model: Structure, log: Log) -> Structure:
    model, warnings = with_shapes(model)
    for text in warnings:
        log.warning(text)
    return model


def _by_running(
    args: Namespace, log: Log, lacking: Sequence[str], inputs: list[End] | None, outputs: list[End] | None
) -> tuple[list[End] | None, list[End] | None]:
    forced = args.force_fallback_shape_inference
    if forced:
        log.info("Forcing fallback shape inference. This will cause dynamic dimensions to become static.")
    else:
        log.warning(
            f"Some tensor shapes or dtypes are missing in the model: {', '.join(shown(n, 80) for n in lacking[:10])}\n"
            "Will run inference to determine shapes. This may cause some dynamic dimensions to become static.\n"
            "To avoid this, please provide metadata on the command-line."
        )
    names = [end.name for end in (*(inputs or ()), *(outputs or ()))]
    known = _run_shapes(args, log, names)
    if not forced:
        known = {name: info for name, info in known.items() if name in lacking}
    return filled(inputs, known), filled(outputs, known, shapes=forced)


def _run_shapes(args: Namespace, log: Log, names: list[str]) -> dict[str, TensorInfo]:
    found: dict[str, TensorInfo] = {}

    def listen(event: dict[str, Any]) -> None:
        if event.get("type") == "row":
            row = event["row"]
            found[row["name"]] = TensorInfo(row["name"], row["dtype"], tuple(row["shape"]))
        elif event.get("type") == "warning":
            log.warning(shown(event.get("text") or ""))

    feeds = given(args, [("onnxrt", None)]).feeds
    params = {"path": args.model_file, "names": names, "feeds": msgspec.to_builtins(feeds)}
    params["external_data_dir"] = args.external_data_dir
    title = f"shapes of {shlex.quote(args.model_file)}"[:200]
    code = run_here(job_spec("run_shapes", params, title, ["layerwise", "surgeon", "extract"]), listen, log)
    if code:
        raise LayerwiseError("fallback shape inference failed: give shapes and types, as in NAME:[1,3]:float32")
    return found


def _ends(items: Sequence[str] | None, model: Structure, shaped: bool) -> list[End] | None:
    return None if items is None else [_end(item, model.lookups.makers.keys() | set(model.input_names), shaped)
                                       for item in items]  # fmt: skip


def _end(item: str, names: Container[str], shaped: bool) -> End:
    """`NAME:SHAPE:TYPE`, `NAME:TYPE` or `NAME`; a name may hold colons."""
    match = _SHAPE.fullmatch(item) or (None if shaped else _TYPE.fullmatch(item))
    if item in names or match is None:
        return End(item)
    dtype = match["dtype"]
    shape = match.groupdict().get("shape") or "auto"
    return End(
        match["name"],
        None if shape.lower() == "auto" else tuple(parse_dims(shape, item)),
        None if dtype.lower() == "auto" else dtype_row(dtype).name,
    )
