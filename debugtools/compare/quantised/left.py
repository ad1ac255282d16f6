"""What few bits explain of one tensor's difference."""

from msgspec import Struct


class Left(Struct, frozen=True):
    """whole: the tensor's relative L2 error; bound: what rounding of floats explains; explained: whether the codes do,
    settled: so surely that nothing else needs to be asked.

    left: of a tensor that weights alone are behind, what is left where both have them rounded (None for others);
    moved: how far rounding the same tensors moves the float original.
    """

    whole: float
    bound: float
    moved: float
    left: float | None
    explained: bool
    settled: bool = False
