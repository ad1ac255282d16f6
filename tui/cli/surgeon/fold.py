"""Constant folding where no constant needs an engine: in this process, without a job and without the onnx package."""

from argparse import Namespace
from pathlib import Path

from layerwise._tool.backends.log import Log
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.sizes import parse_size
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.folding.options import FoldOptions, totals
from layerwise._tool.surgery.folding.wire import fold_bytes
from layerwise._tool.surgery.wire.graph import reading
from layerwise._tool.surgery.wire.pieces import fits_in_one_file, save_pieces
from layerwise._tool.tui.cli.surgeon.common import tell_saved

_MORE = (
    *("outputs", "exclude_outputs", "outputs_by_type", "fp_to_fp16", "set_unbounded_dds_upper_bound"),
    *("override_input_shapes", "force_fallback_shape_inference"),
)


def folded_here(args: Namespace, log: Log, file: ModelFile) -> bool:
    """Fold and save the model, if that is all there is to do and it can be done so; whether it was."""
    asked = any(getattr(args, name) for name in _MORE) or args.save_external_data is not None
    if asked or not args.fold_constants:
        return False
    options = FoldOptions(passes=args.num_passes, shapes=not args.no_fold_shapes, threshold=size_limit(args))
    with reading(file.path):
        folded = fold_bytes(file.structure_bytes(), file.folder, options, not args.no_shape_inference)
    if folded is None or not fits_in_one_file(file, folded.pieces):
        return False
    for text in folded.warnings:
        log.warning(text)
    _tell(log, folded.before, folded.nodes, options.passes)
    save_pieces(Path(args.output), folded.pieces)
    log.info(f"Saving ONNX model to: {shown(args.output)}")
    tell_saved(args, log)
    return True


def _tell(log: Log, before: int, after: int, passes: int | None) -> None:
    """What each pass did: the first one everything, and a second one finds nothing more."""
    counts = [(before, after), (after, after)][: 1 if before == after else passes]
    for number, pair in enumerate(counts, 1):
        log.start(f"Folding Constants | Pass {number}")
        log.finish(totals(*pair))


def size_limit(args: Namespace) -> int | None:
    """Bytes of --fold-size-threshold, if it was given."""
    return parse_size(args.fold_size_threshold) if args.fold_size_threshold else None
