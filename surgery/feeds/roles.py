"""What an input is to the model: the kind and range of its values, with the reason."""

import re
from typing import NamedTuple

from layerwise._tool.backends.specs import InputKind
from layerwise._tool.backends.tensors import TensorInfo, is_floating, is_integral
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.feeds.follow import POSITIONED, Indexing, Traced, traced
from layerwise._tool.surgery.feeds.graph import FeedGraph
from layerwise._tool.surgery.feeds.masks import added_to_scores, mask_by_use
from layerwise._tool.surgery.feeds.settings import setting
from layerwise._tool.surgery.feeds.sizes import Sizer, is_cache
from layerwise._tool.surgery.feeds.stem import Stem

_MASK = re.compile(r"(^|[._/:])(\w+_)?masks?(_?\d*)($|[._/:])", re.I)
_NO_MASK = re.compile(r"masked|mask_(token|index|position|input|time|feature)|use_mask|has_mask", re.I)
_POSITIONS = re.compile(r"(^|[._/])(\w+_)?(position_?ids?|pos_?ids?|positions?|cache_position)$", re.I)
_LENGTHS = re.compile(r"(^|[._/])(\w+_)?(len|lens|lengths?|seq_?lens?|sizes_of)$", re.I)
_STEPS = re.compile(r"^(time_?steps?|t)$", re.I)
_TYPES_OF_TOKENS = re.compile(r"token_type|segment_ids?$", re.I)
_ADDED_LOW = -1e4  # finite in FP16
_VERBS = {
    "OneHot": "is one-hot encoded by", "SoftmaxCrossEntropyLoss": "chooses from",
    **dict.fromkeys(POSITIONED, "is a position in"),
}  # fmt: skip
_TYPES = {"uint8": (0, 255), "int8": (-128, 127)}


class Chosen(NamedTuple):
    """Kind and range of an input's values, and why."""

    kind: InputKind
    low: float
    high: float
    reason: str
    values: tuple[float, ...] = ()


class Roles:
    """Chooses values for the inputs of a graph whose shapes are chosen."""

    def __init__(self, graph: FeedGraph, sizer: Sizer, shapes: dict[str, list[int]], stems: dict[str, Stem]) -> None:
        self._graph, self._sizer, self._shapes, self._stems = graph, sizer, shapes, stems
        self._past = sizer.of("past") if sizer.cached else 0

    def of(self, info: TensorInfo) -> Chosen:
        """What an input is fed with."""
        found = traced(self._graph, info.name)
        if info.dtype == "string":
            return Chosen("uniform", 0, 1, "text, of which nothing is known")
        if found.indices:
            return self._index(info, found.indices)
        shape = self._shapes[info.name]
        given = setting(self._graph, self._sizer, info, shape, found)
        if given is not None:
            low = min(given.values, default=0)
            return Chosen("values", low, max(given.values, default=0), given.reason, given.values)
        return self._mask(info) or self._counted(info, found) or self._free(info, found)

    def _index(self, info: TensorInfo, indices: list[Indexing]) -> Chosen:
        low, high = max(index.low for index in indices), min(index.high for index in indices)
        least = min(indices, key=lambda index: (index.high, not index.weight))
        high = max(low, high)
        what = f"{shown(repr(least.table), 80)} of {least.rows} rows" if least.table else "what has no known size"
        more = len({index.table for index in indices}) - 1
        reason = f"{_VERBS.get(least.op, 'gathers from')} {what}" + (f" and {more} more" if more else "")
        if _POSITIONS.search(info.name) or least.op in POSITIONED:
            return self._positions(info, f"; {reason}", high)
        return Chosen("integers", low, high, reason)

    def _positions(self, info: TensorInfo, reason: str, most: float) -> Chosen:
        shape = self._shapes[info.name]
        start = self._past if shape and shape[-1] == self._sizer.of("sequence") else 0
        last = start + (shape[-1] if shape else 1) - 1
        told = f"counts up{' after the past' if start else ''}{reason}"
        return Chosen("positions", min(start, most), min(last, most), told)

    def _mask(self, info: TensorInfo) -> Chosen | None:
        shape = self._shapes[info.name]
        named = bool(_MASK.search(info.name)) and not _NO_MASK.search(info.name)
        if not shape or (is_floating(info.dtype) and not named and len(shape) > 4):
            return None
        ones = "GroupQueryAttention" in self._graph.ops
        seen = mask_by_use(self._graph, info.name)
        if seen is not None and (named or not is_floating(info.dtype)):
            high, low = (seen.kept, seen.masked) if not ones else (1.0, 1.0)
            told = "" if high >= low else "; 1 is masked"
            return Chosen("mask", low, high, f"masks what {seen.by} takes{told}")
        if not named or seen is not None:
            return None
        if is_floating(info.dtype) and added_to_scores(self._graph, info.name):
            return Chosen("mask", _ADDED_LOW, 0.0, "is added to the scores that Softmax takes")
        if info.dtype == "bool" and re.search("pad", info.name, re.I):
            return Chosen("mask", 1.0, 0.0, "a mask of padding by its name; 1 is masked")
        return Chosen("mask", 1.0 if ones else 0.0, 1.0, "a mask by its name")

    def _counted(self, info: TensorInfo, found: Traced) -> Chosen | None:
        """Positions and lengths; None for all else."""
        if not is_integral(info.dtype) and not is_floating(info.dtype):
            return None
        shape, name = self._shapes[info.name], info.name
        recurrent = found.at(("LSTM", 4), ("GRU", 4), ("RNN", 4), ("ReverseSequence", 1))
        if recurrent is not None:
            dims = self._graph.dims(self._graph.read_by(recurrent, 0)) or ()
            axis = next((a.i for a in recurrent.node.attribute if a.name in ("layout", "time_axis")), 0)
            size = dims[axis] if axis < len(dims) else None
            return self._lengths(size or self._sizer.of("sequence"), f"the lengths that {recurrent.node.op_type} takes")
        if is_integral(info.dtype) and _POSITIONS.search(name):
            return self._positions(info, ": positions by its name", float("inf"))
        if _LENGTHS.search(name) and len(shape) == 1:
            size, of = self._counted_axis(info)
            return self._lengths(size, f"lengths by its name: {of}")
        if _TYPES_OF_TOKENS.search(name):
            return Chosen("integers", 0, 1, "token types by its name")
        if _STEPS.search(name):
            return Chosen("integers", 0, 999, "a time step by its name")
        return None

    @staticmethod
    def _lengths(size: int, reason: str) -> Chosen:
        return Chosen("lengths", max(1, size // 2), size, f"{reason}, at most {size}")

    def _counted_axis(self, info: TensorInfo) -> tuple[int, str]:
        """The size of the dimension that lengths are of, and which one that is."""
        stem = re.sub(r"[._/]?(len|lens|lengths?)$", "", info.name, flags=re.I)
        best: tuple[int, int, str] = (-1, self._sizer.of("sequence"), "of a sequence")
        kinds = ("sequence", "frames", "encoder", "total")
        for other in self._graph.inputs:
            shape = self._shapes[other.name]
            if len(shape) < 2:
                continue
            axes = [axis for axis in range(len(shape)) if self._sizer.kind(other, axis) in kinds]
            axis = max(axes, key=lambda axis: shape[axis], default=1 if len(shape) == 2 else len(shape) - 1)
            score = 2 * bool(stem and other.name.startswith(stem)) + bool(axes)
            if score > best[0]:
                best = score, shape[axis], f"of dimension {axis} of {shown(other.name, 60)!r}"
        return best[1], best[2]

    def _free(self, info: TensorInfo, found: Traced) -> Chosen:
        """Values that nothing in the graph bounds."""
        if info.dtype == "bool":
            return Chosen("integers", 0, 1, "true or false, either way")
        if is_integral(info.dtype):
            low, high = _TYPES.get(info.dtype, (0, 9))
            return Chosen("integers", low, high, "numbers: no table is indexed by them")
        stem = self._stems.get(info.name, Stem({}, {}))
        channels = next((axis for axis, kind in stem.kinds.items() if kind == "channels"), None)
        if channels is not None and "height" in stem.kinds.values():
            count = self._shapes[info.name][channels]
            if count in (1, 3, 4):
                return Chosen("uniform", 0, 1, f"an image of {count} channels: {stem.by} takes it")
        if is_cache(info):
            return Chosen("normal", 0, 1, "a cache of earlier positions, by its name")
        if found.by("Log", "Sqrt", "Pow") is not None:
            return Chosen("uniform", 0, 1, "its logarithm or root is taken")
        return Chosen("normal", 0, 1, f"numbers that {stem.by} takes" if stem.by else "numbers")
