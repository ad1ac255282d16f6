"""What is given of an alignment: a map, and what a person corrected or renamed."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.file import by_hand, fitting_map, load_map
from layerwise._tool.debugtools.align.graph import AlignGraph
from layerwise._tool.debugtools.compare.aligning.by_hand import corrections
from layerwise._tool.debugtools.compare.aligning.told import dropped_text

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class Given(Struct, frozen=True):
    """pairs: given by hand. alone: tensors of the first side without counterpart. map: what else there is, None where
    that has to be found out.
    """

    pairs: list[AlignedPair]
    alone: list[str] = []
    map: Alignment | None = None

    @property
    def any(self) -> bool:
        """Whether anything is given."""
        return bool(self.pairs or self.alone or self.map is not None)


def given_for(
    context: "JobContext",
    align: str,
    renamed: Mapping[str, str],
    models: tuple[str, str],
    paths: tuple[str, str],
    graphs: Sequence[AlignGraph],
) -> Given:
    """Return what is given for two models; what does not hold for them any more is told.

    align: "auto" or the path of a map. models: digests of the two; paths: where they are. UsageError for a map that
    does not fit.
    """
    pairs = [AlignedPair(name, own, "certain", ("hand",)) for name, own in renamed.items()]
    if align != "auto":
        path = user_path(align)
        fitted = fitting_map(path, load_map(path), graphs, models)
        kept = by_hand(fitted.alignment)
        alone = [one.tensor for one in fitted.alignment.unpaired if one.hand]
        if fitted.anew or fitted.dropped:
            context.warn(dropped_text(shown(str(path)), len(kept) + len(alone), fitted.dropped, anew=fitted.anew))
        if not fitted.anew:
            return Given([*kept, *pairs], alone, fitted.alignment)
        return Given([*kept, *pairs], alone)
    found = corrections(context.folder.parent.parent, models, paths, graphs)
    if found.carried or found.dropped:
        source = "what was corrected for earlier versions of these two"
        context.warn(dropped_text(source, found.carried, found.dropped))
    alone = [one.tensor for one in found.alignment.unpaired]
    return Given([*found.alignment.pairs, *pairs], alone)


def with_equal_names(found: Alignment, mine: Collection[str], theirs: Collection[str]) -> Alignment:
    """A map, with equal names where it says nothing. mine, theirs: what nodes of the two models make."""
    told = {pair.tensor for pair in found.pairs} | {one.tensor for one in found.unpaired if one.side == 0}
    taken = {pair.other for pair in found.pairs} | {one.tensor for one in found.unpaired if one.side == 1}
    alike = [name for name in mine if name in theirs and name not in told and name not in taken]
    return replace(found, pairs=[*found.pairs, *(AlignedPair(n, n, "certain", ("name",)) for n in alike)])
