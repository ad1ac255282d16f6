"""Captures what native code prints: onnxruntime's warnings, which are not available otherwise."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layerwise._tool.backends.text import shown

_WARNING = re.compile(r"\[W:onnxruntime:[^,]*, (?P<place>[^\]]*)\] (?P<text>.*?)(\x1b\[m)?$", re.MULTILINE)
_MOST = 1 << 20


@contextmanager
def warnings_of() -> Iterator[list[str]]:
    """Collect the warnings that onnxruntime logs in the block; at its end, one per code location, others counted.

    They are read from the file that stderr is redirected to (a job's log); otherwise there are none.
    """
    found: list[str] = []
    start = _size()
    yield found
    if start is not None:
        with Path("/proc/self/fd/2").open("rb") as log:
            log.seek(start)
            found += _distinct(log.read(_MOST).decode(errors="replace"))


def _size() -> int | None:
    try:
        status = os.fstat(2)
        return status.st_size if stat.S_ISREG(status.st_mode) and Path("/proc/self/fd/2").exists() else None
    except OSError:
        return None


def _distinct(text: str) -> list[str]:
    places: dict[str, list[str]] = {}
    for match in _WARNING.finditer(text):
        places.setdefault(match["place"], []).append(shown(match["text"].strip(), 600))
    return [texts[0] + (f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else "") for texts in places.values()]
