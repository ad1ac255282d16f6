"""The rows of table `quantised` and what they come to, as a job's journal (schema version 1) holds them."""

from typing import Literal

from msgspec import Struct

Role = Literal["weight", "bias", "activation"]
Form = Literal["QDQ", "QOperator", "dynamic", "block", "cache"]
Word = Literal["", "scale", "zero point", "clipped", "coarse", "channel", "axis", "mismatch", "values"]


class QuantisedRow(Struct, frozen=True, kw_only=True):
    """A row of table `quantised`: a tensor that a model holds in few bits.

    i, node, op: the node that quantises it or, of a weight, that reads it. tensor: what holds the codes; other: its
    float original. format: type, granularity and symmetry, in words. scale, zero: the smallest and the largest.
    clipped: share of the values that the codes cannot reach; dead: of `channels` those whose values all have one
    code though they differ. used: share of the codes' range that the values take up. sqnr: in dB, None where nothing
    is lost or nothing is known; best: what the same format gives with the values' own range. loss: dB between the
    two. worst: the channels that lose most. readers: names of the nodes that take it. word: what is wrong with it, ""
    if the format explains it; text: the same in a sentence; excess: relative L2 error beyond what the format
    explains. masked: its codes have to reach a mask's values, which leaves hardly any for the others: no fault of the
    codes, but nothing is left of these. elsewhere: its codes fit what the model computes there, and the original has
    other values, for what lies before.
    """

    i: int = -1
    node: str = ""
    op: str = ""
    tensor: str = ""
    other: str = ""
    role: Role = "weight"
    form: Form = "QDQ"
    format: str = ""
    shape: tuple[int, ...] = ()
    scale: tuple[float, float] | None = None
    zero: tuple[float, float] | None = None
    clipped: float | None = None
    dead: int | None = None
    channels: int = 0
    used: float | None = None
    sqnr: float | None = None
    best: float | None = None
    loss: float | None = None
    worst: tuple[int, ...] = ()
    readers: tuple[str, ...] = ()
    word: Word = ""
    text: str = ""
    excess: float = 0.0
    masked: bool = False
    elsewhere: bool = False

    @property
    def error(self) -> float | None:
        """Relative L2 error of its codes against the float original; None if that is not known."""
        return None if self.sqnr is None else 10.0 ** (-self.sqnr / 20)


class QuantisedResult(Struct, frozen=True):
    """What the tensors in few bits of one side come to. tensors: how many; wrong: of how many the format does not
    explain what is lost; text: in a sentence; worst: what is wrong first, then what loses most.

    cost: relative L2 error of the worst output; moved: how far rounding the same tensors moves the float model's; left:
    where weights alone are in few bits, what of the error is left once the float model's are rounded alike. explained:
    that is all that the tensors that were compared are off by.
    """

    tensors: int = 0
    wrong: int = 0
    text: str = ""
    worst: list[QuantisedRow] = []
    explained: bool = False
    cost: float | None = None
    moved: float | None = None
    left: float | None = None
