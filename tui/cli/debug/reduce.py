"""`layerwise debug reduce`: the smallest model that still fails, all independent culprits in one go."""

from argparse import Namespace
from pathlib import Path

from layerwise._tool.backends.log import Log
from layerwise._tool.tui.cli.debug import options
from layerwise._tool.tui.cli.debug.searching import run_search
from layerwise._tool.tui.cli.options.model import add_external_data
from layerwise._tool.tui.cli.parser import Parser


def fill_reduce(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx -o REDUCED.onnx [SIDES… | --check COMMAND…] [OPTIONS]"
    parser.epilog = (
        "layerwise debug reduce BAD.onnx --reference-model GOOD.onnx --onnxrt -o reduced.onnx\n"
        "layerwise debug reduce M.onnx -o reduced.onnx --check layerwise run polygraphy_debug.onnx --onnxrt --onnx\n"
        "layerwise debug reduce M.onnx -o reduced.onnx        # you answer\n\n" + options.EXIT_CODES
    )
    group = parser.add_argument_group("Reducing")
    group.add_argument("-o", "--output", metavar="FILE", help="the smallest failing model, also while searching")
    group.add_argument(
        "--min-good", "--minimal-good", dest="min_good", metavar="FILE", help="a model close to it that passes"
    )
    one_way = group.add_mutually_exclusive_group()
    one_way.add_argument("--no-reduce-inputs", dest="reduce_inputs", action="store_false", help="outputs only")
    one_way.add_argument("--no-reduce-outputs", dest="reduce_outputs", action="store_false", help="inputs only")
    group.add_argument(
        "--mode", choices=("bisect", "linear", "ddmin"),
        help="ddmin: any subset of the nodes, to 1-minimality, several faults (the default where two sides judge); "
        "bisect, linear: by single cuts, as Polygraphy does (bisect is the default otherwise)",
    )  # fmt: skip
    options.add_judging(parser)
    options.add_iterating(parser)
    options.add_sides(parser)
    group = parser.add_argument_group("Saving the model")
    add_external_data(parser, group)
    group.add_argument("--no-shape-inference", dest="shape_inference", action="store_false", help="infer no shapes")


def run_reduce(args: Namespace, log: Log) -> int:
    """Reduce; the exit code."""
    code = run_search("reduce", args, log)
    if code == 0 and args.save_external_data is not None:
        for path in filter(None, (args.output, args.min_good)):
            _put_weights_outside(Path(path), args)
    return code


def _put_weights_outside(path: Path, args: Namespace) -> None:
    """Save a model that was found again, its weights in files beside it."""
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.saving.model import save
    from layerwise._tool.tui.cli.surgeon.common import threshold

    if path.is_file():
        with ModelFile(path) as file:
            external = Path(args.save_external_data or f"{path.name}.data")
            save(Structure.open(file), path, external=external, each=args.no_save_all_tensors_to_one_file,
                 threshold=threshold(args), overwrite=True)  # fmt: skip
