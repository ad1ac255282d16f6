"""Feed dicts from a data loader script of the user."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.fit import fit_feed
from layerwise._tool.backends.scripts import load_function, script_errors
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown


def script_feeds(
    spec: FeedSpec, inputs: Sequence[TensorInfo] | None, warn: Callable[[str], None], *, similar: bool = False
) -> tuple[int | None, Callable[[], Iterator[dict[str, Array]]]]:
    """How many feed dicts a script gives, None if only it knows, and what yields them; as `make_feeds`."""
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

    def make() -> Iterator[dict[str, Array]]:
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
    return count if spec.iterations is None else spec.iterations, make


def _guarded(items: Iterator[Any], path: Path, where: str) -> Iterator[Any]:
    while True:
        with script_errors(path, where):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
