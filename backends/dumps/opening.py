"""Saved outputs and dumps of other programs, told apart. What reads dumps is imported where there is one."""

import os
from pathlib import Path

from layerwise._tool.backends.dumps.dump import Dump
from layerwise._tool.backends.dumps.kinds import is_dump
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.formats.dumps import FEEDS_FORMAT, RESULTS_FORMAT, DumpReader
from layerwise._tool.backends.results.inference import RunResults, Stored
from layerwise._tool.backends.results.io import load_any, load_results
from layerwise._tool.backends.specs import DumpRule
from layerwise._tool.backends.text import shown


def open_results(path: str | os.PathLike[str], rule: DumpRule | None = None) -> Dump:
    """Saved outputs, or a dump of another program. BadFile says what is wrong with which file; UsageError if the rule
    does not fit. No array is read yet.
    """
    place = Path(path)
    if not another_programs(place):
        if rule is not None:
            raise UsageError(f"{shown(str(path))} holds saved outputs, which need no --dump-rule")
        return Dump(load_results(place))
    from layerwise._tool.backends.dumps.read import read_dump

    return read_dump(place, rule or DumpRule())


def another_programs(path: Path) -> bool:
    """Whether a path is a dump of another program, and not our outputs, inputs or Polygraphy's."""
    if not path.is_dir():
        if path.suffix == ".safetensors":
            return DumpReader(path).metadata.get("format") not in (RESULTS_FORMAT, FEEDS_FORMAT)
        return is_dump(path)
    ours = sorted(path.glob("*.json"))
    if not any(is_dump(child) for child in path.iterdir()):
        return False
    if not ours:
        return True
    try:
        first = load_any(ours[0])
    except LayerwiseError:
        return True
    feeds = first if isinstance(first, list) else []
    inputs = any(feeds) and all(isinstance(value, Stored) for feed in feeds for value in feed.values())
    return not inputs and not isinstance(first, RunResults)
