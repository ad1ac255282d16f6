"""`layerwise surgeon prune`: 2:4 sparse weights, or no nodes of some operators."""

from argparse import Namespace

from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon.common import add_model, add_saving, open_file, save_model


def fill_prune(parser: Parser) -> None:
    parser.usage = "%(prog)s MODEL.onnx [--remove-node-types OP …] -o PRUNED.onnx"
    parser.epilog = (
        "Of each four neighbours along the axis that is summed over the two smallest become zero: to try out sparse\n"
        "tensor cores, for accuracy suffers. With --remove-node-types no weight is touched."
    )
    add_model(parser)
    parser.own(parser, "--remove-node-types", nargs="+", action="extend", metavar="OP",
               help="leave out all nodes of these types; what they read goes on to those that read them")  # fmt: skip
    add_saving(parser)


def run_prune(args: Namespace, log: Log) -> int:
    """Prune and save the model."""
    with open_file(args, log) as file:
        from layerwise._tool.surgery.edits.nodes import Bypass
        from layerwise._tool.surgery.model.structure import Structure
        from layerwise._tool.surgery.rewrite.tidy import cleaned_model
        from layerwise._tool.surgery.weights.sparsity import candidates, prune_2_4

        model = Structure.open(file)
        if args.remove_node_types:
            after = cleaned_model(Bypass(ops=tuple(args.remove_node_types)).apply(model))
            log.info(f"{len(model.nodes) - len(after.nodes)} nodes are gone")
            save_model(args, log, after)
            return 0
        found = candidates(model.nodes, model.initializers)
        for name, reason in found.skipped:
            log.warning(f"Skipping tensor: {shown(name, 120)}: {shown(reason, 200)}")
        model = prune_2_4(model)
        log.finish(f"Finished pruning {len(found.eligible)} weights")
        save_model(args, log, model)
    return 0
