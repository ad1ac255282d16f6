"""Pairs that a person corrected. They lie in the workspace, a file for each two structures of models, so that later
runs of these models have them.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Unpaired
from layerwise._tool.debugtools.align.file import load_map, save_map, still_there, tensors_of
from layerwise._tool.debugtools.align.graph import AlignGraph

_FOLDER = "alignments"


def load_by_hand(root: Path, models: tuple[str, str]) -> Alignment:
    """What was corrected by hand for two models; nothing where what is there is no map. root: of the workspace."""
    found = _read(_file(root, models))
    alone = [replace(one, hand=True) for one in found.unpaired]
    return Alignment(found.pairs, alone, models)


class Kept(Struct, frozen=True):
    """What was corrected by hand. dropped: for earlier versions of the models, of tensors that are not there any more;
    carried: how many corrections were taken over from those.
    """

    alignment: Alignment
    dropped: list[str] = []
    carried: int = 0


def corrections(root: Path, models: tuple[str, str], paths: tuple[str, str], graphs: Sequence[AlignGraph]) -> Kept:
    """What was corrected for two models; of changed models, what was for the ones that were at these paths before."""
    record = root / _FOLDER / f"{_hash(paths)}-last.json"
    earlier = _read(record)
    saved = load_by_hand(root, models)
    kept = Kept(saved)
    if earlier.models not in (models, ("", "")) and not saved.pairs and not saved.unpaired:
        still, dropped = still_there(load_by_hand(root, earlier.models), [tensors_of(graph) for graph in graphs])
        count = len(still.pairs) + len(still.unpaired)
        kept = Kept(replace(still, models=models), dropped, count)
        if count:
            _write(_file(root, models), kept.alignment)
    if earlier.models != models:
        with suppress(OSError):
            _write(record, Alignment([], [], models))
    return kept


def save_by_hand(root: Path, models: tuple[str, str], tensor: str, other: str) -> list[str]:
    """Keep that two tensors belong together; without `other`, that the first one has no counterpart. OSError.

    Return the tensors that the same counterpart was given before by hand: they are left to the alignment again.
    """
    known = load_by_hand(root, models)
    pairs = [pair for pair in known.pairs if pair.tensor != tensor and pair.other != other]
    alone = [one for one in known.unpaired if one.tensor != tensor]
    if other:
        pairs.append(AlignedPair(tensor, other, "certain", ("hand",)))
    else:
        alone.append(Unpaired(tensor, 0, hand=True))
    _write(_file(root, models), Alignment(pairs, alone, models))
    return [pair.tensor for pair in known.pairs if pair.other == other and pair.tensor != tensor]


def corrected(found: Alignment, given: Iterable[AlignedPair], alone: Iterable[str] = ()) -> Alignment:
    """The alignment with these pairs in place of all that say something else of their tensors.

    alone: tensors of the first side without counterpart.
    """
    given, alone = list({pair.tensor: pair for pair in given}.values()), set(alone)
    mine, theirs = {pair.tensor for pair in given} | alone, {pair.other for pair in given}
    kept = [pair for pair in found.pairs if pair.tensor not in mine and pair.other not in theirs]
    there = {pair.other for pair in kept} | theirs
    lost = [Unpaired(pair.tensor, 0) for pair in found.pairs if pair.tensor not in mine and pair.other in theirs]
    lost += [Unpaired(name, 1) for name in dict.fromkeys(pair.other for pair in found.pairs) if name not in there]
    lost += [Unpaired(name, 0, hand=True) for name in sorted(alone)]
    left = [one for one in found.unpaired if one.tensor not in (theirs if one.side else mine)]
    return replace(found, pairs=[*kept, *given], unpaired=[*left, *lost])


def with_given(found: Alignment, given: Iterable[AlignedPair]) -> Alignment:
    """The alignment with all that a person gave, used or not: weights too, and what does not fit its shape."""
    there = {pair.tensor for pair in found.pairs}
    left = {pair.tensor: pair for pair in given if pair.tensor not in there}
    unpaired = [one for one in found.unpaired if one.side or one.tensor not in left]
    return replace(found, pairs=[*found.pairs, *left.values()], unpaired=unpaired)


def _file(root: Path, models: tuple[str, str]) -> Path:
    return root / _FOLDER / f"{_hash(models)}.json"


def _hash(texts: tuple[str, str]) -> str:
    return blake2b(" ".join(texts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _read(path: Path) -> Alignment:
    try:
        return load_map(path) if path.is_file() else Alignment([])
    except LayerwiseError:
        return Alignment([])


def _write(path: Path, alignment: Alignment) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    save_map(path, alignment)
