"""Titles of jobs with their files named as briefly as keeps different ones apart: a row has no room for folders."""

import re
from collections.abc import Iterable

_PATH = re.compile(r"(?<![^\s=,'\"])/[^\s,:'\"]*[^\s,:'\"/]")


def short_titles(titles: Iterable[str]) -> dict[str, str]:
    """What to show of each title: absolute paths by as many of their last parts as no other path ends in."""
    whole = list(titles)
    short = _short({path for title in whole for path in _PATH.findall(title)})
    return {title: _PATH.sub(lambda found: short[found[0]], title) for title in whole}


def _short(paths: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    parts = 1
    while paths:
        by_end: dict[str, list[str]] = {}
        for path in paths:
            by_end.setdefault("/".join(path.split("/")[-parts:]), []).append(path)
        found |= {same[0]: end for end, same in by_end.items() if len(same) == 1 or end in same}
        paths = paths.difference(found)
        parts += 1
    return found
