"""Weights of two models: which are the same, which have another name, layout or other values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import Layout
from layerwise._tool.debugtools.align.layouts import find_layout
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.arithmetic.totals import worst
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.diff.graph_side import GraphSide
from layerwise._tool.debugtools.diff.outcome import Section
from layerwise._tool.surgery.inspect.view import GraphView

_FAR = 0.5  # relative L2 distance; of two that have nothing in common about 1.4


@dataclass
class Weights:
    """Initializers matched: by name where their values are the same, by content under another name, by name again.

    equal: of the second's parameters, each -> the first of its content. copies: of the first's, each -> the first of
    the second's of its content. shared_a, shared_b: what the other side holds fewer times, or as a constant.
    paired: those that an alignment alone pairs.
    """

    same: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    equal: dict[str, str] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    shared_a: list[str] = field(default_factory=list)
    shared_b: list[str] = field(default_factory=list)
    paired: dict[str, str] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, str]:
        """Name in the first -> name in the second (of equal ones the first), changed ones too."""
        same = {name: self.equal.get(name, name) for name in self.same}
        return {**self.copies, **same, **{name: name for name in self.changed}}

    def settle(self, tensors: Mapping[str, str]) -> None:
        """Take up pairs of weights that were left alone until the graphs were aligned."""
        free = set(self.only_b)
        for name in self.only_a:
            other = tensors.get(name)
            if other in free:
                self.paired[name] = other
                free.discard(other)
        self.only_a = [name for name in self.only_a if name not in self.paired]
        self.only_b = [name for name in self.only_b if name in free]


def match_weights(a: GraphSide, b: GraphSide) -> Weights:
    """Match the initializers; values that may have been renamed are hashed, no others."""
    found = Weights()
    for name, tensor in a.weights.items():
        if name in b.weights and same(a.view, tensor, b.view, b.weights[name]):
            found.same[name] = name
    here, there = ({**side.contents, **_hashed(side, found.same)} for side in (a, b))
    by_content: dict[bytes, list[str]] = {}
    for name, digest in there.items():
        by_content.setdefault(digest, []).append(name)
    found.equal = {name: by_content[digest][0] for name, digest in there.items()}
    found.copies = {name: by_content[digest][0] for name, digest in here.items() if digest in by_content}
    free = {name for name in b.weights if name not in found.same}
    left = {digest: [name for name in names if name in free] for digest, names in by_content.items()}
    taken = set(found.same)
    for name in a.weights:
        if name not in found.same and left.get(here.get(name, b"")):
            found.renamed[name] = left[here[name]].pop(0)
            taken.add(found.renamed[name])
    known = set(here.values())
    found.shared_a = [name for name in a.weights if name in found.copies and name not in {*found.same, *found.renamed}]
    found.shared_b = [name for name in b.weights if name not in taken and there.get(name) in known]
    _leftovers(a, b, found, taken)
    return found


def _hashed(side: GraphSide, known: Mapping[str, str]) -> dict[str, bytes]:
    """Hashes of the large weights whose counterpart is not known."""
    names = [name for name in side.weights if name not in side.contents and name not in known]
    found = {name: side.digest(side.weights[name]) for name in names}
    return {name: digest for name, digest in found.items() if digest is not None}


def _leftovers(a: GraphSide, b: GraphSide, found: Weights, taken: set[str]) -> None:
    shared = set(found.shared_a), {*taken, *found.shared_b}
    for name in a.weights:
        if name not in found.same and name not in found.renamed and name not in shared[0]:
            (found.changed if name in b.weights and name not in shared[1] else found.only_a).append(name)
    known = {*shared[1], *found.changed}
    found.only_b = [name for name in b.weights if name not in known]


def add_changed(
    section: Section, a: GraphSide, b: GraphSide, names: tuple[str, str], rule: Rule, layout: Layout | None = None
) -> Comparison | None:
    """Note how far a weight of both sides is apart; nothing where it is within `rule`. Return what was measured.

    layout: how the second becomes the first.
    """
    x, y = a.weights[names[0]], b.weights[names[1]]
    other = b.view.array(y)
    result = compare_arrays(a.view.array(x), other if layout is None else layout(other), rule)
    if result.passed:
        return None
    text, fields = distance(result)
    label, more = shown(names[0], 200), {}
    if names[0] != names[1]:
        label, more = f"{label} → {shown(names[1], 200)}", {"other": names[1]}
    section.add(f"{label} {types(x, y)}: {text}", name=names[0], **more, a=described(x), b=described(y), **fields)
    return result


def layout_of(a: GraphSide, b: GraphSide, names: tuple[str, str]) -> Layout | None:
    """How the second of two weights becomes the first, where their shapes or the order of their elements differ."""
    x, y = a.view.array(a.weights[names[0]]), b.view.array(b.weights[names[1]])
    if x.size != y.size or not x.size:
        return None
    found = find_layout(x, y, _FAR)
    return None if found == Layout() else found


def add_relaid(section: Section, a: GraphSide, b: GraphSide, names: tuple[str, str], layout: Layout) -> bool:
    """Note that two weights have the same values in another layout, if they have."""
    x, y = a.weights[names[0]], b.weights[names[1]]
    if x.dtype != y.dtype or not same_bits(a.view.array(x), layout(b.view.array(y))):
        return False
    how = f"axes {list(layout.permutation)}" if layout.permutation else "reshaped"
    text = f"{shown(names[0], 200)} → {shown(names[1], 200)} {types(x, y)}: {how}"
    section.add(text, a=names[0], b=names[1], **msgspec.to_builtins(layout))
    return True


def distance(result: Comparison) -> tuple[str, dict[str, Any]]:
    """How far two arrays are apart, as text and as fields."""
    totals = result.totals
    if totals is None:
        return shown(result.note or f"{result.over} elements differ", 200), {"note": result.note}
    fields = {
        "max_abs": worst(totals.abs), "max_rel": worst(totals.rel), "rel_l2": result.rel_l2, "over": result.over,
        "size": totals.abs.count,
    }  # fmt: skip
    rel = "-" if result.rel_l2 is None else f"{result.rel_l2:.4g}"
    text = f"max abs {fields['max_abs']:.4g}, rel L2 {rel}, {result.over} of {fields['size']} elements differ"
    return text, fields


def described(tensor: TensorRecord) -> dict[str, Any]:
    """Type and shape, for machines."""
    return {"dtype": dtype_name(tensor.dtype), "shape": list(tensor.dims)}


def types(x: TensorRecord, y: TensorRecord) -> str:
    """Type and shape, of both where they differ."""
    first, second = (f"{dtype_name(t.dtype)} {shown(str(list(t.dims)), 80)}" for t in (x, y))
    return first if first == second else f"{first} → {second}"


def same(a: GraphView, x: Any, b: GraphView, y: Any) -> bool:
    """Whether two attribute values are equal, tensors to the bit."""
    if isinstance(x, TensorRecord) and isinstance(y, TensorRecord):
        return x.dtype == y.dtype and list(x.dims) == list(y.dims) and same_bits(a.array(x), b.array(y))
    return type(x) is type(y) and bool(x == y)
