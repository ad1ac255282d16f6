"""`template shard-hints`: how a model may be split over GPUs, as its graph tells; `multi-device shard` splits it."""

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import UsageError, writing
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon.common import add_saving, open_file, save_model

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.plugins.shard.graph import ShardGraph
    from layerwise._tool.surgery.plugins.shard.hints import Hints
    from layerwise._tool.surgery.plugins.shard.template import ShardChoices

_NUMBERS = {"--root": -1, "--gpus": 0, "--i-idx": 0, "--o-idx": 0, "--k-idx": 0, "--v-idx": 0, "--nb-rank": 1,
            "--i-rank": None, "--o-rank": None, "--kv-rank": None}  # fmt: skip
_LISTS = ("--groups", "--q-shuffle", "--k-shuffle", "--v-shuffle")
_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "--parallelism": ("CP", ("CP", "TP")), "--cp-type": ("native", ("native", "fused")),
    "--reduce-op": ("max", ("sum", "prod", "min", "max", "avg")),
}  # fmt: skip


def fill_shard_hints(parser: Parser) -> None:
    _fill(parser)
    parser.add_argument("-o", "--output", metavar="PATH")
    options.add_overwrite(parser, parser)


def fill_shard(parser: Parser) -> None:
    _fill(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("-s", "--hint", metavar="FILE", help="the hints")
    source.add_argument("--one-shot", action="store_true", help="hints as `template shard-hints` makes them")
    add_saving(parser)


def _fill(parser: Parser) -> None:
    add(parser, MODEL, ONNX)
    for flag, default in _NUMBERS.items():
        parser.add_argument(flag, metavar="N", type=int, default=default)
    for flag in _LISTS:
        parser.add_argument(flag, nargs="*", metavar="N", type=int, default=[] if flag == "--groups" else None)
    for flag, (usual, choices) in _CHOICES.items():
        parser.add_argument(flag, choices=choices, default=usual)
    parser.add_argument("--attention-pattern", type=int, choices=(0, 1), default=0)
    for flag in ("--no-suggest-io", "--is-causal"):
        parser.add_argument(flag, action="store_true")


def run_shard_hints(args: Namespace, log: Log) -> int:
    """Write the hints; 0. UsageError for a model or output that is none."""
    if not args.model_file or not args.output:
        raise UsageError("the path of the model, or of the hints (--output), is missing")
    if not args.output.endswith(".json"):
        raise UsageError("Output file must be a json")
    replaces(args.output, [args.model_file], args.overwrite)
    hints = _hints(args, log)
    from layerwise._tool.backends.filesystem.files import write_named

    with writing(shown(args.output)):
        write_named(args.output, json.dumps(hints, indent=4))
    return 0


def _hints(args: Namespace, log: Log) -> dict[str, Any]:
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.plugins.shard.template import shard_hints

    with ModelFile(args.model_file, args.external_data_dir, args.ignore_external_data) as file:
        return shard_hints(Structure.open(file), _choices(args), lambda text: log.info(shown(text)))


def _choices(args: Namespace) -> "ShardChoices":
    from layerwise._tool.surgery.plugins.shard.template import ShardChoices

    return ShardChoices(
        parallelism=args.parallelism, root=args.root, gpus=args.gpus, groups=args.groups,
        fused=args.cp_type == "fused", suggest_io=not args.no_suggest_io,
        places=(args.i_idx, args.o_idx, args.k_idx, args.v_idx), ranks=(args.i_rank, args.o_rank, args.kv_rank),
        reduce_op=args.reduce_op, pattern=args.attention_pattern,
        shuffles=(args.q_shuffle, args.k_shuffle, args.v_shuffle), causal=args.is_causal, nb_rank=args.nb_rank,
    )  # fmt: skip


def run_shard(args: Namespace, log: Log) -> int:
    """Write the model, or that of each rank; 0. UsageError for hints or a model that cannot be split."""
    from layerwise._tool.surgery.plugins.shard.context_parallel import along_sequence
    from layerwise._tool.surgery.plugins.shard.tensor_parallel import by_weights

    if not args.model_file:
        raise UsageError("the path of the model is missing")
    replaces(args.output, [args.hint, getattr(args, "named", None)], args.overwrite)
    with open_file(args, log, describe=False) as file:
        graph, hints = _graph(args, file, log)
        if hints.parallelism == "CP":
            tell, warn = (lambda text: log.info(shown(text))), log.warning
            model = along_sequence(graph, hints, args.attention_pattern, tell, warn)
            save_model(args, log, model, describe=False)
            return 0
        if args.no_save_all_tensors_to_one_file:
            raise UsageError("All tensors must be saved to one file if TP is used")
        ranks = hints.dist_collectives.nb_rank
        places = [_of_rank(args, file, rank, ranks) for rank in range(ranks)]
        for rank, model in enumerate(by_weights(graph, hints, log.warning)):
            log.info(f"Saving rank {rank} graph")
            save_model(places[rank], log, model, describe=False)
    return 0


def _graph(args: Namespace, file: ModelFile, log: Log) -> tuple["ShardGraph", "Hints"]:
    """The model's graph, and its hints."""
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.plugins.shard.graph import ShardGraph
    from layerwise._tool.surgery.plugins.shard.hints import hints_of, read_hints
    from layerwise._tool.surgery.plugins.shard.template import graph_hints

    hints = None if args.one_shot else read_hints(Path(args.hint))
    structure = Structure.open(file)
    if args.shape_inference:
        structure = _inferred(structure, log)
    graph = ShardGraph(structure, lambda text: log.info(shown(text)))
    if hints is None:
        hints = hints_of(graph_hints(graph.graph, _choices(args), lambda text: log.info(shown(text))))
    return graph, hints


def _inferred(structure: "Structure", log: Log) -> "Structure":
    from layerwise._tool.surgery.types.shapes import with_shapes

    structure, warnings = with_shapes(structure)
    for text in warnings:
        log.warning(text)
    return structure


def _of_rank(args: Namespace, file: ModelFile, rank: int, ranks: int) -> Namespace:
    """Where the model of a rank goes, its weights beside it. UsageError for a file that is read."""
    path = Path(args.output)
    own = path.with_name(f"{path.stem}_tp{ranks}_rank{rank}.onnx")
    found = Namespace(**{**vars(args), "output": str(own), "save_external_data": f"{own.name}.data"})
    for output in (own, own.with_name(f"{own.name}.data")):
        weights = {ref.file for ref in file.weights().values()} if output.exists() else ()
        replaces(output, [args.model_file, getattr(args, "named", None), args.hint, *weights], args.overwrite)
    return found
