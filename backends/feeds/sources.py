"""Makes feed dicts, one dict of arrays per iteration, from files, a script or synthetic data; and writes them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.opening import another_programs
from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.feeds.fit import fit_feed
from layerwise._tool.backends.feeds.planned import Planned
from layerwise._tool.backends.feeds.synthetic import Synthetic
from layerwise._tool.backends.filesystem.files import WholeOrNothing, atomic_writer
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.formats.dumps import FEEDS_FORMAT, DumpWriter
from layerwise._tool.backends.formats.json_arrays import as_array
from layerwise._tool.backends.formats.json_format import save, write_value
from layerwise._tool.backends.results.inference import RunResults, Stored, StoredOutputs, describe
from layerwise._tool.backends.results.io import iteration_files, load_any
from layerwise._tool.backends.results.writer import check_target
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.specs import DumpRule, FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown

Warn = Callable[[str], None]
Feed = dict[str, Array]
_ONE = (".npz", ".safetensors")  # one iteration, whatever its names look like


class FeedsWriter(WholeOrNothing):
    """Writes feed dicts as they come; the file or folder appears, complete, at `close`.

    A path ending in .safetensors gives our dump, any other extension JSON for `--load-inputs` (of Polygraphy too), none
    a folder with one JSON file per iteration. UsageError if the folder is not empty.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._target = Path(path)
        self._count = 0
        self._stack = ExitStack()
        self._stream: BinaryIO | None = None
        self._dump: DumpWriter | None = None
        self._folder: Path | None = None
        check_target(self._target)
        if self._target.suffix == ".safetensors":
            self._dump = DumpWriter(self._target)
        elif self._target.suffix:
            self._stream = self._stack.enter_context(atomic_writer(self._target))
        else:
            self._folder = self._stack.enter_context(whole_folder(self._target))

    def add(self, feed: Mapping[str, Any]) -> None:
        """Write one iteration's inputs: name -> array, Stored or torch tensor."""
        try:
            arrays = {n: v.array() if isinstance(v, Stored) else as_array(v) for n, v in feed.items()}
        except ValueError as error:
            raise UsageError(f"iteration {self._count} holds what is no tensor: {error}") from None
        if self._dump is not None:
            for name, array in arrays.items():
                self._dump.add(f"{self._count}:{name}", array)
        elif self._folder is not None:
            save(self._folder / f"{self._count:010d}.json", arrays)
        elif self._stream is not None:
            self._stream.write(b",\n    " if self._count else b"[\n    ")
            write_value(self._stream, arrays, 1)
        self._count += 1

    def close(self) -> None:
        """Move the file or folder into place."""
        if self._dump is not None:
            self._dump.metadata |= {"format": FEEDS_FORMAT, "iterations": str(self._count)}
            self._dump.close()
        elif self._folder is not None:
            self._stack.close()
        elif self._stream is not None:
            self._stream.write(b"\n]" if self._count else b"[]")
            self._stack.close()

    def abort(self) -> None:
        """Discard everything written."""
        if self._dump is not None:
            self._dump.abort()
        self._stack.__exit__(InterruptedError, InterruptedError(), None)


class Feeds(Struct, frozen=True):
    """Feed dicts in order; every pass yields the same ones (a script's generator allows only one pass).

    count: how many, None if only the source knows.
    """

    count: int | None
    make: Callable[[], Iterator[Feed]]

    def __iter__(self) -> Iterator[Feed]:
        return self.make()


def make_feeds(spec: FeedSpec, inputs: Sequence[TensorInfo], warn: Warn, *, similar: bool = False) -> Feeds:
    """Return the feed dicts that `spec` asks for, checked against the model's `inputs`.

    similar: an input may get data of a similar name, or else of its place.

    `warn` gets what was assumed, cast or dropped, each message once. Raises UsageError or BadFile here or during
    iteration: a name, shape or type that does not match, an unreadable file; LayerwiseError for a script that fails.
    """
    if spec.iterations is not None and spec.iterations < 0:
        raise UsageError(f"--iterations is {spec.iterations}: give 0 or more")
    if not 0 <= spec.seed < 1 << 32:
        raise UsageError(f"--seed is {spec.seed}: give 0 to {(1 << 32) - 1}")
    warn_once = _once(warn)
    if spec.files:
        return _file_feeds(spec, inputs, warn_once, similar)
    if spec.script:
        return _script_feeds(spec, inputs, warn_once, similar)
    if spec.made == "auto" and not spec.plan and inputs:
        warn_once("no graph was read for these inputs (--feeds auto): they are made as Polygraphy does")
    synthetic = Planned(spec, inputs, warn_once) if spec.plan else Synthetic(spec, inputs, warn_once)
    return Feeds(synthetic.count, lambda: map(synthetic.feed, range(synthetic.count)))


def _once(warn: Warn) -> Warn:
    said: set[str] = set()

    def say(message: str) -> None:
        if message not in said:
            said.add(message)
            warn(message)

    return say


def _file_feeds(spec: FeedSpec, inputs: Sequence[TensorInfo], warn: Warn, similar: bool) -> Feeds:
    sources = [source for path in spec.files for source in _sources(Path(path))]

    def make() -> Iterator[Feed]:
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

    return Feeds(None, make)


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


def save_feeds(path: str | os.PathLike[str], feeds: Iterable[Mapping[str, Any]]) -> None:
    """Write feed dicts like `FeedsWriter`: .json, .safetensors, or a folder with a file per iteration."""
    with FeedsWriter(path) as writer:
        for feed in feeds:
            writer.add(feed)


def _script_feeds(spec: FeedSpec, inputs: Sequence[TensorInfo], warn: Warn, similar: bool) -> Feeds:
    path = Path(spec.script or "").absolute()
    found = load_function(path, spec.function)
    where = f"{path.name}:{spec.function}"
    with script_errors(path, f"{spec.function}()"):
        loaded = found() if callable(found) else found
    if isinstance(loaded, Mapping):
        loaded = [loaded]
    if not isinstance(loaded, Iterable) and not hasattr(loaded, "__getitem__"):
        raise UsageError(f"{shown(where)} gave {type(loaded).__name__}, not feed dicts (input name -> array)")
    passes = 0

    def make() -> Iterator[Feed]:
        nonlocal passes
        passes += 1
        if passes > 1 and isinstance(loaded, Iterator):
            raise LayerwiseError(f"{shown(where)} is a generator, which can be read only once: return a list")
        number = -1
        for number, feed in enumerate(islice(_guarded(iter(loaded), path, where), spec.iterations)):
            if not isinstance(feed, Mapping) or not all(isinstance(name, str) for name in feed):
                kind = type(feed).__name__
                raise UsageError(f"{shown(where)}, item {number}: {kind}, not a dict of input name -> array")
            yield fit_feed(feed, inputs, warn, shown(where), similar=similar)
        if number < 0 and spec.iterations != 0:
            raise UsageError(f"{shown(where)}: no inputs in there")

    count = len(loaded) if isinstance(loaded, Sequence) else None
    return Feeds(count if spec.iterations is None else spec.iterations, make)


def _guarded(items: Iterator[Any], path: Path, where: str) -> Iterator[Any]:
    while True:
        with script_errors(path, where):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
