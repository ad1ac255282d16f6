"""Which tensors of two models belong together, as a comparison found out: read, and corrected by hand."""

from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.align.alignment import Alignment
from layerwise._tool.debugtools.align.file import load_map
from layerwise._tool.debugtools.compare.aligning.by_hand import save_by_hand


def alignment_of(folder: Path) -> Alignment | None:
    """What the job in a folder found out of the first other model; None where it had nothing to find out."""
    for path in sorted((folder / "artifacts").glob("alignment-*.json")):
        try:
            return load_map(path)
        except LayerwiseError:
            continue
    return None


def other_names(found: Alignment) -> list[str]:
    """The other model's tensors: first those that nothing belongs to."""
    alone = [one.tensor for one in found.unpaired if one.side == 1]
    return list(dict.fromkeys([*alone, *(pair.other for pair in found.pairs)]))


def correct(root: Path, found: Alignment, tensor: str, other: str) -> list[str]:
    """Keep for later runs that two tensors belong together ("": that the first has no counterpart). LayerwiseError.

    Return the tensors whose earlier correction that contradicts.
    """
    try:
        return save_by_hand(root, found.models, tensor, other)
    except OSError as error:
        raise LayerwiseError(f"the pair could not be kept: {error.strerror}") from error
