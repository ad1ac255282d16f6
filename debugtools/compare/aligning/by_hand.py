"""Pairs that a person corrected. They lie in the workspace, a file for each two structures of models, so that later
runs of these models have them.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.file import load_map, save_map

_FOLDER = "alignments"


def load_by_hand(root: Path, models: tuple[str, str]) -> Alignment:
    """What was corrected by hand for two models; nothing where what is there is no map. root: of the workspace."""
    path = _file(root, models)
    try:
        return load_map(path) if path.is_file() else Alignment([], [], models)
    except LayerwiseError:
        return Alignment([], [], models)


def save_by_hand(root: Path, models: tuple[str, str], tensor: str, other: str) -> None:
    """Keep that two tensors belong together; without `other`, that the first one has no counterpart. OSError."""
    known = load_by_hand(root, models)
    pairs = [pair for pair in known.pairs if pair.tensor != tensor and pair.other != other]
    alone = [one for one in known.unpaired if one.tensor != tensor]
    if other:
        pairs.append(AlignedPair(tensor, other, "certain", ("hand",)))
    else:
        alone.append(Unpaired(tensor, 0))
    path = _file(root, models)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    save_map(path, Alignment(pairs, alone, models))


def corrected(found: Alignment, given: Iterable[AlignedPair], alone: Iterable[str] = ()) -> Alignment:
    """The alignment with these pairs in place of all that say something else of their tensors.

    alone: tensors of the first side without counterpart.
    """
    given, alone = list(given), set(alone)
    mine, theirs = {pair.tensor for pair in given} | alone, {pair.other for pair in given}
    kept = [pair for pair in found.pairs if pair.tensor not in mine and pair.other not in theirs]
    there = {pair.other for pair in kept} | theirs
    lost = [Unpaired(pair.tensor, 0) for pair in found.pairs if pair.tensor not in mine and pair.other in theirs]
    lost += [Unpaired(name, 1) for name in dict.fromkeys(pair.other for pair in found.pairs) if name not in there]
    lost += [Unpaired(name, 0) for name in sorted(alone)]
    left = [one for one in found.unpaired if one.tensor not in (theirs if one.side else mine)]
    return replace(found, pairs=[*kept, *given], unpaired=[*left, *lost])


def _file(root: Path, models: tuple[str, str]) -> Path:
    return root / _FOLDER / f"{blake2b(' '.join(models).encode(), digest_size=16).hexdigest()}.json"
