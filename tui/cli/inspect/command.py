"""`layerwise inspect model|data`; engines and networks are in `tui.cli.inspect.trt`."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.direct import DirectContext
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.common import ONNX
from layerwise._tool.tui.cli.options.model import MODEL_FILE
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.options.trt import TENSORFLOW, TRT
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.request.to_spec import refuse_other_frameworks, wants_engine

if TYPE_CHECKING:
    from layerwise._tool.backends.model.file import ModelFile

_PARTS = ("layers", "attrs", "weights", "modules")
_MODES = {"basic": [], "layers": ["layers"], "attrs": ["layers", "attrs"], "full": ["layers", "attrs", "weights"]}


def fill_model(parser: Parser) -> None:
    parser.halves = True
    parser.usage = "%(prog)s MODEL.onnx | ENGINE | SCRIPT.py[:FUNCTION] [OPTIONS]"
    parser.epilog = (
        "layerwise inspect model M.onnx --show layers attrs weights\n"
        "layerwise inspect model M.onnx --show modules --module encoder.layer.0   # as PyTorch's exporter noted them\n"
        "layerwise inspect model M.onnx --convert-to trt --show layers   # the network that its parser makes\n"
        "layerwise inspect model M.engine --show layers attrs --nodes-of M.onnx   # tactics; which layer does what\n"
        "layerwise inspect model M.engine --visual -o engine.html                 # the same as a web page"
    )
    add(parser, MODEL_FILE)
    group = parser.add_argument_group("What to show")
    group.add_argument("--show", nargs="+", action="extend", choices=_PARTS, default=[],
                       help="layers, their attributes too, weights; the modules that nodes come from")  # fmt: skip
    parser.own(group, "--module", metavar="PATH", default="",
               help="only nodes of this module, as in encoder.layer.0, or of those that a glob names")  # fmt: skip
    parser.own(group, "--mode", choices=tuple(_MODES), help="the older spelling of --show")
    parser.own(group, "--show-weights", action="store_true", help="the same as --show weights")
    group.add_argument("--convert-to", "--display-as", choices=("trt",),
                       help="show the TensorRT network that the model's parser makes")  # fmt: skip
    group.add_argument("--list-unbounded-dds", action="store_true",
                       help="tensors that size others without a limit (better with --shape-inference)")  # fmt: skip
    group.add_argument("--combine-tensor-info", metavar="FILE",
                       help="saved outputs: smallest, largest and mean value beside an engine's tensors")  # fmt: skip
    parser.own(group, "--nodes-of", metavar="MODEL.onnx",
               help="which of the engine's layers does each node of this model")  # fmt: skip
    group.add_argument("--visual", action="store_true",
                       help="write the graph as a web page that needs no network")  # fmt: skip
    group.add_argument("--visual-port", metavar="PORT", help="accepted; nothing is served")
    group.add_argument("--save-visual", metavar="FILE", help="where the page goes; MODEL.html here if not given")
    parser.own(group, "-o", "--output", dest="save_visual", metavar="FILE", help="the same as --save-visual")
    parser.own(group, "--job", metavar="JOB",
               help="colour the page by this comparison; the newest of the model if not given")  # fmt: skip
    parser.own(group, "--json", action="store_true", help="print one JSON document instead of the text")
    add(parser, ONNX, TRT, TENSORFLOW)


def run_model(args: Namespace, log: Log) -> int:
    """Print what is in an ONNX model, in a TensorRT engine, or in the network that a model or a script makes."""
    show = [*args.show, *_MODES.get(args.mode or "basic", []), *(["weights"] if args.show_weights else [])]
    in_other_ways = args.convert_to or wants_engine(args) or args.visual or args.save_visual
    if args.fp_to_fp16 and in_other_ways:
        raise UsageError("--fp-to-fp16 is for ONNX models shown as text: `layerwise convert` the model first")
    if in_other_ways and (args.module or "modules" in show):
        raise UsageError("modules are known of ONNX models shown as text or JSON")
    if args.convert_to or wants_engine(args):
        from layerwise._tool.tui.cli.inspect.trt import describe_trt

        return describe_trt(args, sorted(set(show)), log)
    refuse_other_frameworks(args)
    for name in ("combine_tensor_info", "nodes_of"):
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} is for TensorRT engines")
    if args.visual or args.save_visual:
        from layerwise._tool.tui.cli.inspect.visual import write_page

        return write_page(args, log)
    return _describe(args, sorted(set(show)), log)


def _describe(args: Namespace, show: list[str], log: Log) -> int:
    from layerwise._tool.surgery.inspect.document import describe_model_json, joined_lines
    from layerwise._tool.surgery.inspect.text import describe_model

    inferred = bool(args.shape_inference)
    with _opened(args) as model:
        unbounded = _unbounded(model, inferred) if args.list_unbounded_dds else None
        if args.json:
            extra = {} if unbounded is None else {"unbounded_dds": unbounded}
            print_json(describe_model_json(model, show, inferred, args.module) | extra)
            return 0
        log.info(f"Loading model: {shown(str(model.path))}")
        context = DirectContext({}, log)
        lines = describe_model(model, show, inferred, args.module)
        context.log(next(lines), "out")
        for text in joined_lines(lines):  # a flush for each of 400,000 lines takes longer than making them
            context.log(text, "out")
        if unbounded is not None:
            log.info(f"Found tensors with unbounded DDS: {[shown(name, 300) for name in unbounded]}")
    return 0


@contextmanager
def _opened(args: Namespace) -> Iterator["ModelFile"]:
    """The model, in FP16 if that is asked for; its path is what was given."""
    from layerwise._tool.backends.model.file import ModelFile

    with ModelFile(args.model_file, args.external_data_dir, args.ignore_external_data) as model:
        if not args.fp_to_fp16:
            yield model
            return
        from layerwise._tool.backends.filesystem.temporary import temporary_folder
        from layerwise._tool.surgery.precision.conversion import in_half

        with temporary_folder() as folder, ModelFile(in_half(model, folder)) as half:
            half.path = model.path
            yield half


def _unbounded(model: "ModelFile", inferred: bool) -> list[str]:
    from layerwise._tool.backends.model.protos import parse_model
    from layerwise._tool.surgery.types.infer import inferred_structure
    from layerwise._tool.surgery.types.unbounded import unbounded_tensors

    structure = model.structure_bytes()
    return unbounded_tensors(parse_model(inferred_structure(structure)[0] if inferred else structure, model.path))


def fill_data(parser: Parser) -> None:
    parser.add_argument(
        "path",
        help="saved inputs, outputs or accuracy results, a file or a folder of "
        "iterations; or a dump of another program: a folder, .zip, .tar, .tar.gz, .pt",
    )
    parser.add_argument("-a", "--all", action="store_true", help="every iteration, not the first alone")
    parser.add_argument("-s", "--show-values", action="store_true", help="values, not statistics alone")
    parser.add_argument("--histogram", action="store_true")
    parser.add_argument("-n", "--num-items", type=int, default=3, metavar="N",
                        help="values at the ends of each dimension (-1: all)")  # fmt: skip
    parser.add_argument("--line-width", type=int, default=75, metavar="N", help="-1: no limit")
    parser.own(parser, "--statistics", action="store_true", help="statistics (they are always shown)")
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    parser.own(parser, "--dump-rule", nargs="+", action="extend", default=[], metavar="RULE",
               help="how a dump is read, as of `run`")  # fmt: skip


def run_data(args: Namespace, log: Log) -> int:
    """Print what is in a file of saved tensors."""
    from layerwise._tool.backends.saved_data.actions import action_inspect_data

    wanted = ("path", "all", "show_values", "histogram", "num_items", "line_width", "json", "dump_rule")
    params: dict[str, Any] = {name: getattr(args, name) for name in wanted}
    found = action_inspect_data(DirectContext(params, log, tab="    "))
    if args.json:
        print_json(found)
    return 0
