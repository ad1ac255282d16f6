"""Reads TOML files."""

import os
import sys
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import one_line, shown
from layerwise._tool.backends.wording import in_words

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

MOST = 1 << 20


def read_toml(path: str | os.PathLike[str], most: int = MOST) -> dict[str, Any]:
    """Return what a file says. BadFile if it cannot be read, is no TOML, or has more than `most` bytes."""
    data = read_file(path, most)
    try:
        text = data.decode("utf-8-sig")  # some editors put a mark before the text
    except UnicodeDecodeError as error:
        raise BadFile(path, f"not valid TOML: {in_words(error, 200)}") from None
    return parse_toml(text, path)


def parse_toml(text: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a text says. BadFile with the name of its file if it is no TOML."""
    try:
        return loads(text)
    except ValueError as error:  # the parser's own words, which say where
        raise BadFile(path, f"not valid TOML: {shown(one_line(str(error)), 200)}") from None
    except RecursionError as error:
        raise BadFile(path, f"not valid TOML: {in_words(error, 200)}") from None
