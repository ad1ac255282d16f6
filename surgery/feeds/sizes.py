"""Sizes for dynamic dimensions: by the name of a symbol, by what weights ask for, and by place."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from layerwise._tool.backends.tensors import Dim, TensorInfo, is_integral
from layerwise._tool.surgery.feeds.stem import Stem

_NAMED = (
    ("past", r"past|cache|history"),
    ("total", r"total|(attention_)?mask_?(seq|len)|kv_(seq|len)"),
    ("batch", r"batch|^bs?z?$|^n$|num_(images|samples)"),
    ("encoder", r"encoder_?(seq|len)|^enc_|source|src|memory|context_len"),
    ("height", r"height|^h$|^ih$|rows"),
    ("width", r"width|^w$|^iw$|cols"),
    ("depth", r"^depth$|num_frames"),
    ("channels", r"channel|^c$|^ch$"),
    ("frames", r"frames?$|samples?$|audio|^mel|feature_?len|waveform"),
    ("sequence", r"seq|len|token|time|text|words?$|^[stl]$|steps?$|decoder"),
    ("count", r"boxes|num_|queries|points|rois|objects|nodes|edges|labels"),
)
_MEANINGLESS = re.compile(r"dynamic_axes|^(unk|dim|axis|dyn|d|s|u|\?)?_*\d+$|^unk__|^\?$|^-1$", re.I)
_ANONYMOUS = re.compile(r"dynamic_axes|^unk__|^\?$|^-1$", re.I)
_PAST = re.compile(r"(^|[._/])(past|cache|mems?)|past_|_cache", re.I)
_ENCODER = re.compile(r"(^|[._/])(encoder|source|src|memory|cross)", re.I)
_STATES = re.compile(r"encoder_(hidden_states|outputs?)$|last_hidden_state$", re.I)
_MASK = re.compile(r"mask", re.I)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.floordiv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_LONGEST = 200
_MOST = 1 << 31


class Dims(NamedTuple):
    """How dynamic dimensions are sized. base: size of each kind; apart: symbols of one kind get different sizes."""

    base: Mapping[str, int]
    apart: bool


def base_sizes(stems: Mapping[str, Stem], rows: int | None) -> dict[str, int]:
    """The size of each kind. rows: of the smallest table of positions, if there is one."""
    image = max((found.stride for found in stems.values() if "height" in found.kinds.values()), default=1)
    frames = max((found.stride for found in stems.values() if "frames" in found.kinds.values()), default=1)
    side = image * -(-64 // image) if image <= 64 else 2 * image
    sizes = {"batch": 2, "sequence": 16, "encoder": 12, "past": 8, "height": side, "width": _wider(side, image),
             "depth": 8, "channels": 3, "frames": max(64, 8 * frames), "count": 5, "one": 1, "other": 4}  # fmt: skip
    if rows is not None and rows < sizes["past"] + sizes["sequence"]:
        sizes |= {"sequence": max(1, rows // 2), "encoder": max(1, rows // 2 - 1), "past": max(1, rows // 4)}
    return sizes


def _wider(side: int, stride: int) -> int:
    """A multiple of the stride, half as large again."""
    return max(side + stride, stride * -(-3 * side // (2 * stride)))


class Sizer:
    """Gives each dynamic dimension of the inputs a size; equal symbols the same. bound: symbols that the user gave."""

    def __init__(
        self, inputs: Sequence[TensorInfo], stems: Mapping[str, Stem], dims: Dims, bound: Mapping[str, int]
    ) -> None:
        self._stems, self._dims = stems, dims
        self.symbols: dict[str, int] = dict(bound)
        self._images = any("height" in found.kinds.values() for found in stems.values())
        self._given = frozenset(bound)
        self._count: dict[str, int] = {}
        self._fixed = _fixed_sizes(inputs)
        self.cached = any(map(is_cache, inputs))
        for info in inputs:
            for axis, dim in enumerate(info.shape or ()):
                if isinstance(dim, str) and not _ANONYMOUS.search(dim) and not _is_sum(dim):
                    self._name(info, axis, dim)

        for atom in (atom for info in inputs for dim in info.shape or () for atom in _atoms(dim)):
            kind = kind_of_name(atom) or "sequence"
            self.symbols.setdefault(atom, self.of(kind) if kind == "total" else self._base(kind))
        self._past_of_encoder(inputs)

    def _past_of_encoder(self, inputs: Sequence[TensorInfo]) -> None:
        """What is cached of the encoder is as long as its states, whatever its symbol is called."""
        states = next((info for info in inputs if _STATES.search(info.name) and len(info.shape or ()) == 3), None)
        if states is None:
            return
        cached = [info for info in inputs if _PAST.search(info.name) and _ENCODER.search(info.name)]
        length = self._size(states, 1, (states.shape or ())[1])
        for info in cached:
            dim = (info.shape or (None,))[-2:][0]
            if isinstance(dim, str) and dim not in (states.shape or ()) and dim not in self._given:
                self.symbols[dim] = length

    def shape(self, info: TensorInfo) -> list[int]:
        """The shape that an input gets."""
        return [self._size(info, axis, dim) for axis, dim in enumerate(info.shape or ())]

    def of(self, kind: str) -> int:
        """The size of a kind of dimension, as the user's shapes have it where they do."""
        if kind == "total":
            return self.of("past") + self.of("sequence") if self.cached else self.of("sequence")
        named = next((size for name, size in self.symbols.items() if kind_of_name(name) == kind), self._fixed.get(kind))
        return self._base(kind) if named is None else named

    def _base(self, kind: str) -> int:
        return self._dims.base.get(kind, self._dims.base["other"])

    def kind(self, info: TensorInfo, axis: int) -> str:
        """What a dimension counts."""
        dim = (info.shape or ())[axis]
        named = kind_of_name(dim) if isinstance(dim, str) and not _MEANINGLESS.search(dim) else ""
        asked = self._stems.get(info.name, Stem({}, {})).kinds.get(axis, "")
        if asked in ("frames", "height", "width") and named in ("sequence", "encoder"):
            return asked  # of a convolution, whatever it is called
        if named == "batch" and axis and "batch" not in str(dim).lower():
            return self._kind_by_place(info, axis)  # n of n elements
        return named or self._kind_by_place(info, axis)

    def _size(self, info: TensorInfo, axis: int, dim: Dim) -> int:
        if isinstance(dim, int) and dim >= 0:
            return dim
        if isinstance(dim, str):
            if dim in self.symbols:
                return self.symbols[dim]
            if _is_sum(dim):
                return self._sum(dim, info, axis)
        return self._unnamed(info, axis)

    def _unnamed(self, info: TensorInfo, axis: int) -> int:
        asked = self._stems.get(info.name, Stem({}, {})).sizes.get(axis)
        return asked or self.of(self.kind(info, axis))

    def _name(self, info: TensorInfo, axis: int, symbol: str) -> None:
        if symbol in self.symbols:
            return
        asked = self._stems.get(info.name, Stem({}, {})).sizes.get(axis)
        kind = self.kind(info, axis)
        if asked or kind == "total":
            if asked:
                self.symbols[symbol] = asked
            return  # a total is known once its parts are
        again = self._count[kind] = self._count.get(kind, -1) + 1
        apart = self._dims.apart and kind in ("sequence", "encoder", "count", "other")
        self.symbols[symbol] = self._base(kind) + (4 * again if apart else 0)

    def _kind_by_place(self, info: TensorInfo, axis: int) -> str:
        shape, asked = info.shape or (), self._stems.get(info.name, Stem({}, {})).kinds
        encoder, mask = _ENCODER.search(info.name), _MASK.search(info.name)
        if axis in asked:
            return "sequence" if asked[axis] == "sequence" and not encoder else asked[axis]
        if axis == 0:
            return "batch"
        if is_cache(info):
            return ("encoder" if encoder else "past") if axis == len(shape) - 2 else "other"
        if mask and self.cached and axis == len(shape) - 1 and not encoder:
            return "total"
        if mask and len(shape) == 3 and self._images:
            return ("height", "width")[axis - 1]
        is_text = is_integral(info.dtype) or mask
        if axis == 1 or is_text:
            return "one" if is_text and axis == 1 and len(shape) == 4 else "encoder" if encoder else "sequence"
        return "other"

    def _sum(self, text: str, info: TensorInfo, axis: int) -> int:
        """The value of an expression of symbols; that of an unnamed dimension where it is none."""
        try:
            size = self._value(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return self._unnamed(info, axis)
        return size if 0 < size < _MOST else self._unnamed(info, axis)

    def _value(self, node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) < _MOST:
            return node.value
        if isinstance(node, ast.Name):
            return self.symbols.get(node.id) or self.of(kind_of_name(node.id) or "sequence")
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self._value(node.left), self._value(node.right)
            if abs(left) < _MOST and abs(right) < _MOST:
                return _OPERATORS[type(node.op)](left, right)
        raise ValueError("no sum of symbols")


def _fixed_sizes(inputs: Sequence[TensorInfo]) -> dict[str, int]:
    """Lengths of ids and of caches that the model fixes; no others: the rest has to agree with them."""
    found: dict[str, int] = {}
    for info in inputs:
        shape = info.shape or ()
        ids = len(shape) == 2 and is_integral(info.dtype) and not _MASK.search(info.name)
        kind = "past" if is_cache(info) else "sequence" if ids else ""
        dim = shape[-2] if kind == "past" else shape[-1] if kind else None
        if isinstance(dim, int) and dim > 0 and not _ENCODER.search(info.name):
            found.setdefault(kind, dim)
    return found


def is_cache(info: TensorInfo) -> bool:
    """Whether an input holds keys and values of earlier positions, by its name."""
    return bool(_PAST.search(info.name)) and len(info.shape or ()) > 2


def kind_of_name(symbol: str) -> str:
    """What a symbol says that it counts, "" where it says nothing."""
    return next((kind for kind, pattern in _NAMED if re.search(pattern, symbol, re.I)), "")


def _atoms(dim: Dim) -> list[str]:
    """The symbols of a sum."""
    return re.findall(r"[A-Za-z_]\w*", dim) if isinstance(dim, str) and _is_sum(dim) else []


def _is_sum(symbol: str) -> bool:
    return len(symbol) <= _LONGEST and bool(re.search(r"[+*/]|\w - \w", symbol))
