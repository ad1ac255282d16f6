"""Reads untrusted JSON with limits: a document of a few megabytes can become gigabytes of objects."""

import json
import os
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import MOST, read_file
from layerwise._tool.backends.wording import in_words

MOST_VALUES = 1 << 24
_SIGNS = (b",", b"[", b"{")  # precedes each value except the first


def read_json(path: str | os.PathLike[str]) -> Any:
    """Parse a JSON file. BadFile names it and the reason: unreadable, too large, nested too deeply, not JSON."""
    data = read_file(path, MOST)
    check_values(path, data)
    try:
        return json.loads(data)
    except RecursionError:
        raise BadFile(path, "nested too deeply") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number with thousands of digits
        raise BadFile(path, f"not valid JSON: {in_words(error, 200)}") from None


def check_values(path: str | os.PathLike[str], data: bytes) -> None:
    """Raise BadFile for JSON text with more than `MOST_VALUES` values."""
    if len(data) > MOST_VALUES and sum(map(data.count, _SIGNS)) > MOST_VALUES:
        raise BadFile(path, f"too large: more than the {MOST_VALUES:,} values that such a file may have")
