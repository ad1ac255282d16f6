"""`layerwise surgeon extract`: a part of a model as a model of its own."""

import re
from argparse import Namespace
from collections.abc import Container, Sequence
from pathlib import Path

from layerwise._tool.backends.log import Log
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.extract.wire import End, Parts
from layerwise._tool.surgery.wire.graph import reading
from layerwise._tool.surgery.wire.pieces import fits_in_one_file, save_pieces
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.run import DATA
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon.common import (
    add_model,
    add_saving,
    open_file,
    parse_dims,
    tell_referring,
    tell_saved,
)

WORTH_REFERRING = 64 << 20  # bytes of weights; fewer are copied in no time
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
    add(parser, DATA)
    add_saving(parser)
    parser.own(parser, "--copy-weights", action="store_true", help="copy large weights too")


def run_extract(args: Namespace, log: Log) -> int:
    """Cut the part out and save it."""
    with open_file(args, log) as file, reading(file.path):
        parts = Parts(file.structure_bytes())
        inputs, outputs = (_ends(args.inputs, parts, True), _ends(args.outputs, parts, False))
        if not _picked(args, log, file, parts, inputs, outputs):
            from layerwise._tool.tui.cli.surgeon.extract_structure import extract_structure

            extract_structure(args, log, file, inputs, outputs)
    return 0


def _picked(
    args: Namespace, log: Log, file: ModelFile, parts: Parts, inputs: list[End] | None, outputs: list[End] | None
) -> bool:
    """Save the part, if nothing must be inferred or run; whether that was so."""
    if args.shape_inference or args.force_fallback_shape_inference or args.save_external_data is not None:
        return False
    part = parts.extract(inputs, outputs)
    if part is None:
        return False
    refs = [file.weights()[name] for name in part.weights]
    path = Path(args.output)
    refers = not args.copy_weights and sum(ref.nbytes for ref in refs) >= WORTH_REFERRING
    if refers and (path.parent.resolve() != file.folder or path.resolve() == file.real_path):
        return False
    pieces = part.pieces(None if refers else file.folder)
    if not refers and not (part.can_embed and fits_in_one_file(file, pieces)):
        return False
    log.info(f"Saving ONNX model to: {shown(args.output)}")
    save_pieces(path, pieces)
    if refers:
        files = {path.parent / ref.file.relative_to(file.folder) for ref in refs if ref.offset >= 0}
        tell_referring(sorted(files), log)
    tell_saved(args, log)
    return True


def _ends(items: Sequence[str] | None, parts: Parts, shaped: bool) -> list[End] | None:
    names = parts.names() | parts.graph.weights.keys()
    if items is None:
        return None
    ends = [_end(item, names, shaped) for item in items]
    return list({end.name: end for end in ends}.values())  # the last of a name, once


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
        None if dtype.lower() == "auto" else _dtype(dtype),
    )


def _dtype(name: str) -> str:
    from layerwise._tool.backends.tensors import dtype_row

    return dtype_row(name).name
