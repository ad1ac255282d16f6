"""Initializers of two graphs: which is which, and how far their values are apart, a block at a time."""

from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.model.structure import Tensor
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays, worst
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.diff.blocks import same_bytes
from layerwise._tool.debugtools.diff.outcome import Section
from layerwise._tool.debugtools.diff.sides import GraphSide


@dataclass
class Weights:
    """Initializers matched: by name where their values are the same, by content under another name, by name again."""

    same: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)

    @property
    def tensors(self) -> dict[str, str]:
        """Name in the first -> name in the second, changed ones too."""
        return {**self.same, **self.renamed, **{name: name for name in self.changed}}


def match_weights(a: GraphSide, b: GraphSide) -> Weights:
    """Match the initializers; values that may have been renamed are hashed, no others."""
    found = Weights()
    for name, tensor in a.weights.items():
        if name in b.weights and _same(a, tensor, b, b.weights[name]):
            found.same[name] = name
    by_content: dict[bytes, list[str]] = {}
    for name, tensor in b.weights.items():
        digest = b.digest(tensor) if name not in found.same else None
        if digest is not None:
            by_content.setdefault(digest, []).append(name)
    taken = set(found.same)
    for name, tensor in a.weights.items():
        if name in found.same or not by_content:
            continue
        others = by_content.get(a.digest(tensor) or b"")
        if others:
            found.renamed[name] = others.pop(0)
            taken.add(found.renamed[name])
    _leftovers(a, b, found, taken)
    return found


def _leftovers(a: GraphSide, b: GraphSide, found: Weights, taken: set[str]) -> None:
    for name in a.weights:
        if name not in found.same and name not in found.renamed:
            (found.changed if name in b.weights and name not in taken else found.only_a).append(name)
    known = taken | set(found.changed)
    found.only_b = [name for name in b.weights if name not in known]


def _same(a: GraphSide, x: Tensor, b: GraphSide, y: Tensor) -> bool:
    return x.dtype == y.dtype and list(x.dims) == list(y.dims) and same_bytes(a.view.array(x), b.view.array(y))


def add_changed(section: Section, a: GraphSide, b: GraphSide, name: str, rule: Rule) -> Comparison | None:
    """Note how far a weight of both sides is apart; nothing where it is within `rule`. Return what was measured."""
    x, y = a.weights[name], b.weights[name]
    result = compare_arrays(a.view.array(x), b.view.array(y), rule)
    if result.passed:
        return None
    text, fields = distance(result)
    section.add(f"{shown(name, 200)} {types(x, y)}: {text}", name=name, a=described(x), b=described(y), **fields)
    return result


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


def described(tensor: Tensor) -> dict[str, Any]:
    """Type and shape, for machines."""
    return {"dtype": dtype_name(tensor.dtype), "shape": list(tensor.dims)}


def types(x: Tensor, y: Tensor) -> str:
    """Type and shape, of both where they differ."""
    first, second = (f"{dtype_name(t.dtype)} {shown(str(list(t.dims)), 80)}" for t in (x, y))
    return first if first == second else f"{first} → {second}"
