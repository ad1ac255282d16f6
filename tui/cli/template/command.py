"""`layerwise template onnx-gs`: a script to edit a model with onnx-graphsurgeon, to be finished by hand."""

from argparse import Namespace
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log, put
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MARKING, NEEDED_MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.to_spec import given
from layerwise._tool.tui.cli.script.generate import model_loader, write_script

_BODY = """
model = load_model()
graph = gs.import_onnx(model)

# To edit inputs or outputs:
#
# graph.inputs = [...]
# graph.outputs = [...]

# To get at all tensors of the model by name:
#
# tensors = graph.tensors()

# To walk over its nodes:
#
# for node in graph.nodes:
#     print(f"Node: {{node.name}}, op: {{node.op}}\\nInputs: {{node.inputs}}\\nOutputs: {{node.outputs}}")

# To take out what nothing needs, and put the nodes in an order they can run in:
#
# graph.cleanup().toposort()

onnx.save(gs.export_onnx(graph, ir_version=model.ir_version), {output!r})
"""


def fill_onnx_gs(parser: Parser) -> None:
    parser.halves = True
    parser.usage = "%(prog)s MODEL.onnx -o SCRIPT.py [OPTIONS]"
    parser.epilog = "The script needs onnx, onnx-graphsurgeon and layerwise. '-o -' prints it."
    add(parser, NEEDED_MODEL)
    add_output(parser)
    add(parser, MARKING, ONNX)


def run_onnx_gs(args: Namespace, log: Log) -> int:
    """Write the script."""
    spec = given(args, [("onnxrt", None)])
    path = Path(args.model_file)
    if not path.is_file():
        raise UsageError(f"{shown(args.model_file)}: there is no such file")
    imports, loader = model_loader(spec, args.model_file)
    output = str(path.with_name(f"{path.stem}_updated{path.suffix}"))
    lines = [
        "#!/usr/bin/env python3",
        f"# Made by: {args.command}",
        "",
        "import onnx",
        "import onnx_graphsurgeon as gs",
        "",
        *imports,
        "",
        f"load_model = {loader}",
    ]
    text = "\n".join(lines) + "\n" + _BODY.format(output=output)
    save_script(args, text)
    return 0


def save_script(args: Namespace, text: str) -> None:
    """Write the script where --output says; "-" prints it. UsageError for a file that is there already."""
    if args.output == "-":
        put(text)
        return
    replaces(args.output, [args.model_file], args.overwrite)
    write_script(text, args.output)


def add_output(parser: Parser) -> None:
    """-o and --overwrite."""
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="the script")
    options.add_overwrite(parser, parser)
