"""`template shard-hints`: how a model may be split over GPUs, as its graph tells; `multi-device shard` refuses."""

import json
from argparse import Namespace
from typing import Any

from layerwise._tool.backends.errors import MissingDependency, UsageError, writing
from layerwise._tool.backends.log import Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.options import model as options
from layerwise._tool.tui.cli.options.common import MODEL, ONNX
from layerwise._tool.tui.cli.options.option import add
from layerwise._tool.tui.cli.output import replaces
from layerwise._tool.tui.cli.parser import Parser

_REFUSED = (
    "multi-device shard is not offered: what it puts into a model, DistCollective nodes and TensorRT's Attention, runs "
    "on TensorRT with NCCL on several GPUs alone, and cannot be tried here. `layerwise template shard-hints` makes the "
    "hints, which `polygraphy multi-device shard --hint` takes."
)
_NUMBERS = {"--root": -1, "--gpus": 0, "--i-idx": 0, "--o-idx": 0, "--k-idx": 0, "--v-idx": 0, "--nb-rank": 1,
            "--i-rank": None, "--o-rank": None, "--kv-rank": None}  # fmt: skip
_LISTS = ("--groups", "--q-shuffle", "--k-shuffle", "--v-shuffle")
_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "--parallelism": ("CP", ("CP", "TP")), "--cp-type": ("native", ("native", "fused")),
    "--reduce-op": ("max", ("sum", "prod", "min", "max", "avg")),
}  # fmt: skip


def fill_shard_hints(parser: Parser) -> None:
    _fill(parser)
    options.add_overwrite(parser, parser)


def fill_shard(parser: Parser) -> None:
    _fill(parser)
    parser.add_argument("-s", "--hint", metavar="FILE")
    parser.add_argument("--one-shot", action="store_true")
    options.add_external_data(parser, parser)


def _fill(parser: Parser) -> None:
    add(parser, MODEL, ONNX)
    parser.add_argument("-o", "--output", metavar="PATH")
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
    from layerwise._tool.backends.filesystem.files import atomic_write

    with writing(shown(args.output)):
        atomic_write(args.output, json.dumps(hints, indent=4))
    return 0


def _hints(args: Namespace, log: Log) -> dict[str, Any]:
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.plugins.sharding import ShardChoices, shard_hints

    choices = ShardChoices(
        parallelism=args.parallelism, root=args.root, gpus=args.gpus, groups=args.groups,
        fused=args.cp_type == "fused", suggest_io=not args.no_suggest_io,
        places=(args.i_idx, args.o_idx, args.k_idx, args.v_idx), ranks=(args.i_rank, args.o_rank, args.kv_rank),
        reduce_op=args.reduce_op, pattern=args.attention_pattern,
        shuffles=(args.q_shuffle, args.k_shuffle, args.v_shuffle), causal=args.is_causal, nb_rank=args.nb_rank,
    )  # fmt: skip
    with ModelFile(args.model_file, args.external_data_dir, args.ignore_external_data) as file:
        return shard_hints(Structure.open(file), choices, lambda text: log.info(shown(text)))


def run_shard(args: Namespace, log: Log) -> int:
    """Say that it is not offered."""
    raise MissingDependency(_REFUSED)
