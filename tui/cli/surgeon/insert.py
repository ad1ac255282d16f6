"""`layerwise surgeon insert`: one node in the place of what lies between tensors."""

import ast
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon.common import add_model, add_saving, open_file, save_model


def fill_insert(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx --inputs NAME … --outputs NAME … --op OP [OPTIONS] -o NEW.onnx"
    parser.epilog = (
        "What computed the outputs from the inputs is left out where nothing else needs it. A name that is input and\n"
        "output puts the node on that tensor."
    )
    add_model(parser)
    group = parser.add_argument_group("The node")
    group.add_argument("--inputs", nargs="+", action="extend", required=True, metavar="NAME", help="what it reads")
    group.add_argument("--outputs", nargs="+", action="extend", required=True, metavar="NAME", help="what it makes")
    group.add_argument("--op", required=True, metavar="OP", help="its operator")
    group.add_argument("--name", default="", metavar="NAME", help="its name")
    group.add_argument("--attrs", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                       help="its attributes: numbers, text, lists (axis=1 mode='linear' pads=[0,1])")  # fmt: skip
    group = parser.add_argument_group("Shape inference")
    group.add_argument("--shape-inference", "--do-shape-inference", action="store_true", help="infer shapes")
    group.add_argument("--no-onnxruntime-shape-inference", action="store_true",
                       help="accepted; shapes are inferred by onnx alone")  # fmt: skip
    add_saving(parser)


def run_insert(args: Namespace, log: Log) -> int:
    """Insert the node and save the model."""
    attrs = parse_attributes(args.attrs)
    with open_file(args, log) as file:
        from layerwise._tool.surgery.edits.patterns import insert_between
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.types.shapes import with_shapes

        model = insert_between(Structure.open(file), args.inputs, args.outputs, args.op, args.name, attrs)
        save_model(args, log, with_shapes(model)[0] if args.shape_inference else model)
    return 0


def parse_attributes(items: Iterable[str]) -> dict[str, Any]:
    """`name=value` items; a value is a number, a quoted or bare text, or a list of such."""
    values: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not (name and equals):
            raise UsageError(f"{shown(item, 80)!r} is not an attribute; write NAME=VALUE, as in axis=1")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    bare = text.strip()
    if bare.startswith("[") and bare.endswith("]"):
        try:
            return list(ast.literal_eval(bare))
        except (ValueError, SyntaxError):
            return [_value(part) for part in bare[1:-1].split(",") if part.strip()]
    try:
        value = ast.literal_eval(bare)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else text
