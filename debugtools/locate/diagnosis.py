"""One word a tensor: where its error comes from."""

from typing import Literal

from layerwise._tool.debugtools.compare.table.layers import LEAP
from layerwise._tool.debugtools.locate.errors import Error

Word = Literal["kernel", "ill-conditioned", "overflow", "nan", "propagated", "clean"]
_ONSETS: dict[str, Word] = {"overflow": "overflow", "nan": "nan"}


def diagnose(local: Error | None, accumulated: Error | None, amplification: float | None, finding: str) -> Word:
    """Return the word for a tensor.

    local: the error of its region alone, None if that is not known; accumulated: the suspect's, None if it did not get
    there. finding: the layer table's.
    """
    bad = accumulated is not None and accumulated.beyond
    if local is not None and local.onset:
        return _ONSETS[local.onset]
    if local is not None and local.conditioned:
        return "ill-conditioned" if bad else "clean"
    if local is not None and local.beyond:
        return "kernel"
    if accumulated is None or not bad:
        return "clean"
    if accumulated.onset and finding in _ONSETS:
        return _ONSETS[finding]
    return "ill-conditioned" if amplification is not None and amplification >= LEAP else "propagated"
