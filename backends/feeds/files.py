"""Reads saved feeds: JSON, dumps, archives, folders of them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.opening import another_programs
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.feeds.fit import Warn, fit_feed
from layerwise._tool.backends.results.inference import RunResults, StoredOutputs, describe
from layerwise._tool.backends.results.io import iteration_files, load_any
from layerwise._tool.backends.specs import DumpRule, FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown

_ONE = (".npz", ".safetensors")  # one iteration, whatever its names look like


def file_feeds(
    spec: FeedSpec, inputs: Sequence[TensorInfo] | None, warn: Warn, *, similar: bool
) -> Callable[[], Iterator[dict[str, Array]]]:
    """What yields the feeds of `spec.files`, fitted to `inputs`; the files are listed at once and read as they come.

    BadFile, UsageError while it is read: what holds no inputs, or not what the model takes.
    """
    sources = [source for path in spec.files for source in _sources(Path(path))]

    def make() -> Iterator[dict[str, Array]]:
        count = 0
        for path in sources:
            for feed in _loaded(path):
                if count == spec.iterations:
                    return
                yield fit_feed(feed, inputs, warn, shown(str(path), 200), similar=similar)
                count += 1
        if spec.iterations is not None and count < spec.iterations:
            warn(f"--iterations asks for {spec.iterations}, the files hold {count}")
        if not count and spec.iterations != 0:
            raise UsageError(f"{shown(', '.join(spec.files), 200)}: no inputs in there")

    return make


def _sources(path: Path) -> list[Path]:
    """Return a folder's per-iteration files, read one at a time; otherwise, and of dumps, the path itself."""
    return iteration_files(path) if path.is_dir() and not another_programs(path) else [path]


def _loaded(path: Path) -> list[Mapping[str, Any]]:
    if path.suffix not in _ONE and another_programs(path):
        from layerwise._tool.backends.dumps.read import read_dump

        iterations = read_dump(path, DumpRule(), join=False).results[0]
        return [iteration.outputs.stored for iteration in iterations if isinstance(iteration.outputs, StoredOutputs)]
    loaded = load_any(path)
    if isinstance(loaded, RunResults):
        raise BadFile(path, "holds saved outputs, not inputs: make inputs of them with `data merge`")
    if not isinstance(loaded, list) or not all(isinstance(feed, dict) for feed in loaded):
        raise BadFile(path, f"holds {describe(loaded)}, not inputs: a list of dicts, input name -> array")
    return loaded


def load_feeds(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Open saved inputs without checking them against a model: a list of dicts, name -> array or Stored."""
    return [dict(feed) for source in _sources(Path(path)) for feed in _loaded(source)]
