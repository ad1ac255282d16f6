"""Pairs of tensors of two sides, how sure they are and why; saved as JSON that a person may edit."""

from typing import Literal

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array

Reason = Literal["hand", "name", "metadata", "value", "structure"]
Confidence = Literal["certain", "likely", "possible"]


class Layout(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the other side's tensor becomes the comparison's: reshaped to `before`, permuted, reshaped to `after`.

    An empty tuple, and None, leave out that step. after: () makes a scalar.
    """

    before: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    after: tuple[int, ...] | None = None

    def __call__(self, array: Array) -> Array:
        """The tensor in the comparison's layout. ValueError if its shape does not fit."""
        if self.before:
            array = array.reshape(self.before)
        if self.permutation:
            array = np.transpose(array, self.permutation)
        return array if self.after is None else array.reshape(self.after)


class AlignedPair(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """tensor: its name in the comparison's model; other: its counterpart on the other side.

    distance: between their fingerprints, None where they were not compared by value.
    """

    tensor: str
    other: str
    confidence: Confidence
    reasons: tuple[Reason, ...]
    layout: Layout | None = None
    distance: float | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Of the tensor and of its counterpart."""
        return self.tensor, self.other


class Unpaired(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tensor without counterpart. side: 0 the comparison's model, 1 the other; nearest: the nearest miss.

    hand: a person said so.
    """

    tensor: str
    side: int
    nearest: str = ""
    distance: float | None = None
    hand: bool = False


class Alignment(msgspec.Struct, frozen=True):
    """models: digests of the two sides' structures that it was made for, "" where unknown."""

    pairs: list[AlignedPair]
    unpaired: list[Unpaired] = []
    models: tuple[str, str] = ("", "")
