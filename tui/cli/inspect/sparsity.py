"""`layerwise inspect sparsity`: which weights follow the 2:4 pattern."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.json_output import print_json
from layerwise._tool.tui.cli.options.common import ONNX
from layerwise._tool.tui.cli.options.model import MODEL_FILE
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.parser import Parser

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.structure import Structure

_START, _FINISH = "Checking the sparsity pattern of {} tensors.", "Finished checking {} tensors. "


def fill_sparsity(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [OPTIONS]"
    parser.epilog = (
        "A weight is 2:4 sparse if of each four neighbours along the axis that a convolution or matrix product sums\n"
        "over at least two are zero. -v says which weights cannot be, and why. `layerwise surgeon prune` makes them so."
    )
    add(parser, MODEL_FILE)
    parser.own(parser, "--json", action="store_true", help="print one JSON document instead of the text")
    add(parser, ONNX)


def run_sparsity(args: Namespace, log: Log) -> int:
    """Print whether each weight that can be 2:4 sparse is so."""
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.weights.sparsity import candidates

    with ModelFile(args.model_file, args.external_data_dir) as file:
        structure = Structure.open(file)
    found = candidates(structure.nodes, structure.initializers)
    if args.json:
        rows = [_row(structure, name, axis) for name, axis in found.eligible]
        print_json({"weights": rows, "skipped": [{"name": n, "reason": why} for n, why in found.skipped]})
        return 0
    for name, why in found.skipped:
        log.verbose(f"Skipping tensor: {shown(name, 300)}: {why}")
    log.info(f"Found: {len(found.eligible)} weight tensor(s) eligible for pruning.")
    log.start(_START.format(len(found.eligible)))
    for name, axis in found.eligible:
        sparse = _row(structure, name, axis)["sparse"]
        say, word = (log.info, "sparse") if sparse else (log.warning, "non-sparse")
        say(f"Found {word} tensor: {shown(name, 300)}")
    log.finish(_FINISH.format(len(found.eligible)).rstrip())
    return 0


def _row(structure: "Structure", name: str, axis: int) -> dict[str, Any]:
    from layerwise._tool.backends.reference.evaluate import tensor_array
    from layerwise._tool.surgery.weights.sparsity import is_sparse

    weight = structure.initializers[name]
    sparse = is_sparse(tensor_array(weight, structure.folder), axis)
    return {"name": name, "shape": list(weight.dims), "axis": axis, "sparse": sparse}
