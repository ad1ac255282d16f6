"""The rows of a comparison's table `alignment`, as the job's journal (schema version 1) holds them."""

from msgspec import Struct

from layerwise._tool.debugtools.align.alignment import Layout
from layerwise._tool.debugtools.compare.rows import Pair


class AlignmentRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of table `alignment`: two tensors that belong together, or one without counterpart.

    pair: places of the two sides. tensor: of the comparison's model, other: of the other one; "" where there is none.
    confidence: certain, likely or possible; reasons: hand, name, metadata, value, structure. layout: how the other
    comes to the comparison's. distance: between their fingerprints, or to `nearest`, the nearest miss of one that is
    alone.
    """

    pair: Pair
    tensor: str = ""
    other: str = ""
    confidence: str = ""
    reasons: tuple[str, ...] = ()
    layout: Layout | None = None
    distance: float | None = None
    nearest: str = ""

    @property
    def key(self) -> tuple[Pair, str, str, Layout | None]:
        """What a comparison makes of the row."""
        return self.pair, self.tensor, self.other, self.layout
