"""Feeds as lists of rows, and the shapes and ranges of those that are made up."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec
import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.backends.tensors import TensorInfo, is_integral
from layerwise._tool.debugtools.checks.invariants.axes import BATCH, SEQUENCE, Batch, dim_key
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.feeds.follow import traced
from layerwise._tool.surgery.feeds.graph import FeedGraph

ROWS, FEWER = 5, 3
LENGTH, OTHER_LENGTH = 7, 11
_MASK = re.compile(r"(?i)mask")
_OF_ENCODER = re.compile(r"(?i)enc|src|source")
_PAST = re.compile(r"(?i)past|cache")


class Tried(Struct, frozen=True):
    """Lengths for dimensions without one: of sequences, of images, of anything else, of the batch."""

    sequence: int
    image: int
    other: int
    rows: int


ATTEMPTS = (
    Tried(LENGTH, 32, LENGTH, ROWS),
    Tried(16, 64, 16, ROWS),
    Tried(64, 224, 64, ROWS),
    Tried(1, 1, 1, ROWS),
    Tried(128, 640, 128, ROWS),
    Tried(1024, 224, 1024, ROWS),
)
OTHER = Tried(OTHER_LENGTH, 64, OTHER_LENGTH, FEWER)


def shapes(
    inputs: Sequence[TensorInfo],
    batch: Batch,
    given: Mapping[str, list[list[int]]],
    tried: Tried,
    channels: Mapping[str, int],
) -> dict[str, list[int]]:
    """The shape of each input. given: by the user, by name or pattern; only the batch may be longer than there.

    channels: lengths that weights ask for, by what the dimension is called.
    """
    known = dict(channels)
    for info in inputs:
        if (mine := given_shape(given, info.name)) is not None:
            known.update((dim_key(info, at), size) for at, size in enumerate(mine))
    found = {}
    for info in inputs:
        mine = given_shape(given, info.name)
        if mine is None and info.shape is None:
            raise UsageError("an input has no known shape: give one (--input-shapes)")
        dims = [_length(info, at, known, tried) for at in range(len(info.shape or ()))] if mine is None else list(mine)
        axis = batch.axes.get(info.name)
        if axis is not None and batch.fixed is None and (mine is None or dims[axis] < 2):
            dims[axis] = tried.rows
        found[info.name] = dims
    return found


def given_shape(given: Mapping[str, list[list[int]]], name: str) -> list[int] | None:
    """The first shape that the user gives an input, by its name or by a pattern."""
    if name in given:
        return given[name][0]
    return next((many[0] for pattern, many in given.items() if fnmatchcase(name, pattern)), None)


def _length(info: TensorInfo, at: int, known: Mapping[str, int], tried: Tried) -> int:
    dim = (info.shape or ())[at]
    if isinstance(dim, int) and dim >= 0:
        return dim
    key = dim_key(info, at)
    return known[key] if key in known else _of_symbol(key, at, len(info.shape or ()), known, tried)


def _of_symbol(key: str, at: int, rank: int, known: Mapping[str, int], tried: Tried) -> int:
    if key in known:
        return known[key]
    if "+" in key:
        return sum(_of_symbol(part.strip(), at, rank, known, tried) for part in key.split("+"))
    if key.isdigit():
        return int(key)
    if BATCH.fullmatch(key):
        return tried.rows
    if _PAST.search(key):
        return 3
    if SEQUENCE.search(key):
        return tried.sequence + 2 * bool(_OF_ENCODER.search(key) and tried.sequence > 1)
    return tried.image if rank >= 4 and at >= 2 else tried.other


def first_feed(spec: FeedSpec, inputs: Sequence[TensorInfo], batch: Batch, cut: GraphCut, tried: Tried) -> Feed:
    """The feed that all others are made of. UsageError if the user's inputs do not fit."""
    if spec.files or spec.script:
        feed = next(iter(make_feeds(spec, inputs, _silent)), None)
        if feed is None:
            raise UsageError("there are no inputs to run the model with")
        return _with_rows(feed, batch, tried.rows)
    wanted = shapes(inputs, batch, spec.shapes, tried, channels_of(cut, inputs))
    ranges = {**indices_in_range(cut, inputs), **spec.val_range}
    whole = {name: [dims] for name, dims in wanted.items()}
    made = msgspec.structs.replace(spec, shapes=whole, val_range=ranges, iterations=1)
    feed = dict(next(iter(make_feeds(made, inputs, _silent))))
    for info in inputs:
        if is_mask(info.name) and info.name not in spec.val_range and "" not in spec.val_range:
            feed[info.name] = _kept(feed[info.name])
    return feed


def _silent(_: str) -> None:
    """What is assumed about shapes is told as axes."""


def is_mask(name: str) -> bool:
    """Whether an input is a mask by its name."""
    return bool(_MASK.search(name))


def _kept(mask: Array) -> Array:
    """A mask that keeps all positions but the last ones, of each row another number."""
    kept = np.ones(mask.shape, mask.dtype)
    if mask.ndim == 2:
        for row in range(mask.shape[0]):
            kept[row, mask.shape[1] - row % max(1, mask.shape[1] // 2) :] = 0
    return kept


def indices_in_range(cut: GraphCut, inputs: Sequence[TensorInfo]) -> dict[str, tuple[float, float]]:
    """The values that inputs may have that are rows of a table."""
    graph = FeedGraph(cut.model)
    found: dict[str, tuple[float, float]] = {}
    for info in inputs:
        if not is_integral(info.dtype):
            continue
        tables = [index for index in traced(graph, info.name).indices if index.weight]
        low, high = max((each.low for each in tables), default=0), min((each.high for each in tables), default=-1)
        if low <= high:
            found[info.name] = (float(low), float(high))
    return found


def channels_of(cut: GraphCut, inputs: Sequence[TensorInfo]) -> dict[str, int]:
    """The lengths that convolutions and matrix products of inputs with weights ask for."""
    known = {info.name: info for info in inputs}
    found = {}
    for node in cut.nodes:
        info = known.get(node.input[0]) if len(node.input) > 1 else None
        weight = cut.initializers.get(node.input[1]) if info is not None else None
        if info is None or weight is None or len(weight.dims) < 2:
            continue
        rank = len(info.shape or ())
        if node.op_type == "Conv" and rank > 2:
            group = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            found[dim_key(info, 1)] = weight.dims[1] * group
        elif node.op_type == "MatMul" and rank:
            found[dim_key(info, rank - 1)] = weight.dims[-2]
    return found


def origin(cut: GraphCut, name: str) -> str:
    """The tensor that this one is but for its type."""
    while name in cut.maker and cut.nodes[cut.maker[name]].op_type in ("Cast", "Identity"):
        name = cut.nodes[cut.maker[name]].input[0]
    return name


def _with_rows(feed: Feed, batch: Batch, rows: int) -> Feed:
    """A feed with several rows: where there is one alone, the others are the same elements in another order."""
    if batch.fixed is not None or any(feed[name].shape[axis] != 1 for name, axis in batch.axes.items()):
        return feed
    made = dict(feed)
    for name, axis in batch.axes.items():
        flat = feed[name].reshape(-1)
        turned = [np.roll(flat, row).reshape(feed[name].shape) for row in range(rows)]
        made[name] = np.concatenate(turned, axis=axis)
    return made


def row_count(feed: Feed, batch: Batch) -> int:
    """The rows of a feed; 0 if inputs disagree or none has rows."""
    counts = {feed[name].shape[axis] for name, axis in batch.axes.items()}
    return counts.pop() if len(counts) == 1 else 0


def take(feed: Feed, batch: Batch, rows: Sequence[int]) -> Feed:
    """The feed of these rows, in this order; inputs without rows are left alone."""
    return {
        name: np.take(array, rows, axis=batch.axes[name]) if name in batch.axes else array
        for name, array in feed.items()
    }


def copied(feed: Feed) -> dict[str, Array]:
    """The feed in arrays of its own: onnxruntime writes into those of some inputs (BatchNormalization in training)."""
    return {name: array.copy() for name, array in feed.items()}


def distinct(feed: Feed, batch: Batch) -> bool:
    """Whether no two rows of a feed are the same."""
    seen = list(_row_bytes(feed, batch))
    return len(set(seen)) == len(seen)


def _row_bytes(feed: Feed, batch: Batch) -> Iterator[bytes]:
    for row in range(row_count(feed, batch)):
        parts = (np.asarray(np.take(feed[name], row, axis=axis)) for name, axis in batch.axes.items())
        yield b"".join(repr(p.tolist()).encode() if p.dtype == object else p.tobytes() for p in parts)
