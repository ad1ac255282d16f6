"""What is known beforehand of which tensors belong together: a map that was given, and pairs corrected by hand.

Those lie in the workspace, a file for each two structures of models, so that later runs of these models have them.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired

FOLDER = "alignments"
_MOST = 1 << 28


def by_hand_file(root: Path, models: tuple[str, str]) -> Path:
    """Where the pairs that were corrected by hand are kept, for two structures of models. root: of the workspace."""
    name = blake2b("\n".join(models).encode(), digest_size=16).hexdigest()
    return root / FOLDER / f"{name}.json"


def load_by_hand(root: Path, models: tuple[str, str]) -> list[AlignedPair]:
    """The pairs that were corrected by hand for two models; none where there are none, or what is there is no map."""
    path = by_hand_file(root, models)
    if not path.is_file():
        return []
    try:
        return read_map(path).pairs
    except LayerwiseError:
        return []


def save_by_hand(root: Path, models: tuple[str, str], pair: AlignedPair) -> None:
    """Keep a pair that was corrected by hand; one without `other` says that a tensor has no counterpart."""
    pairs = [known for known in load_by_hand(root, models) if known.tensor != pair.tensor]
    pairs = [known for known in pairs if not pair.other or known.other != pair.other]
    path = by_hand_file(root, models)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_map(path, Alignment([*pairs, pair], [], models))


def read_map(path: Path) -> Alignment:
    """Read a map. BadFile if it is none."""
    try:
        return msgspec.json.decode(read_file(path, _MOST), type=Alignment)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFile(path, f"not a map of tensors: {shown(str(error), 200)}") from None


def write_map(path: Path, alignment: Alignment) -> None:
    """Write a map, so that a person can read and change it."""
    atomic_write(path, msgspec.json.format(msgspec.json.encode(alignment), indent=1) + b"\n")


def check_map(path: Path, alignment: Alignment, models: tuple[str, str]) -> None:
    """UsageError for a map that was made for models of another structure."""
    for made_for, now, side in zip(alignment.models, models, ("first", "second"), strict=True):
        if made_for and made_for != now:
            raise UsageError(f"--align {shown(str(path), 200)} was made for another {side} model: make it anew")


def corrected(found: Alignment, given: Iterable[AlignedPair]) -> Alignment:
    """The alignment with these pairs in place of all that say something else of their tensors."""
    given = list(given)
    mine, theirs = {pair.tensor for pair in given}, {pair.other for pair in given}
    pairs = [pair for pair in found.pairs if pair.tensor not in mine and pair.other not in theirs]
    left = [Unpaired(pair.tensor, 0) for pair in found.pairs if pair.tensor not in mine and pair.other in theirs]
    left += [Unpaired(pair.other, 1) for pair in found.pairs if pair.tensor in mine and pair.other not in theirs]
    left += [Unpaired(pair.tensor, 0) for pair in given if not pair.other]
    unpaired = [one for one in found.unpaired if one.tensor not in (theirs if one.side else mine)]
    return replace(found, pairs=[*pairs, *(pair for pair in given if pair.other)], unpaired=[*unpaired, *left])
