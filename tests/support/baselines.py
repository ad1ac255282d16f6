"""Baselines of pairs of models, and versions of a model in which one weight drifts further away from what it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from msgspec.structs import replace
from onnx import numpy_helper
from support.faults.ours import run_action

from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.baseline.spec import BaselineSpec
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.spec import CompareSpec, ToleranceSpec

_PRODUCTS = ("MatMul", "Gemm", "Conv")
_PARTS = 4


@dataclass(frozen=True)
class Checked:
    """What a check found."""

    result: BaselineResult
    rows: list[ChangeRow]

    def of(self, change: str) -> list[ChangeRow]:
        return [row for row in self.rows if row.change == change]


def pair(suspect: Path, reference: Path, feeds: FeedSpec | None = None, **more: Any) -> CompareSpec:
    """A suspect against a reference, both on onnxruntime."""
    runners = [RunnerSpec(kind="onnxrt"), RunnerSpec(kind="onnxrt", model=str(reference))]
    return CompareSpec(model=str(suspect), runners=runners, feeds=feeds or FeedSpec(), **more)


def accept(spec: CompareSpec, file: Path) -> BaselineResult:
    """Write a baseline, in this process."""
    done = run_action("baseline", BaselineSpec(compare=spec, output=str(file)), "baseline")
    return msgspec.convert(done.result, BaselineResult)


def check(spec: CompareSpec, file: Path, *, repeat: int | None = None, update: bool = False) -> Checked:
    """Hold a comparison against a baseline, in this process."""
    request = BaselineSpec(compare=spec, file=str(file), output=str(file) if update else None, repeat=repeat)
    done = run_action("baseline", request, "baseline")
    return Checked(msgspec.convert(done.result, BaselineResult), msgspec.convert(done.rows, list[ChangeRow]))


def products(path: Path) -> list[str]:
    """The weights of products in a model's order: floating, of two dimensions and more."""
    model = onnx.load(path)
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    read = [name for node in model.graph.node if node.op_type in _PRODUCTS for name in node.input if name in known]
    return [name for name in dict.fromkeys(read) if len(known[name].dims) > 1]


def maker_of(path: Path, weight: str) -> str:
    """The tensor that is made with a weight."""
    return next(node.output[0] for node in onnx.load(path).graph.node if weight in node.input)


def drifted(path: Path, weight: str, amount: float, target: Path) -> Path:
    """The model with a weight a relative `amount` away: each column by another part of it."""
    model = onnx.load(path)
    tensor = next(each for each in model.graph.initializer if each.name == weight)
    values = numpy_helper.to_array(tensor)
    parts = np.random.default_rng(0).uniform(0.5, 1.5, values.shape[-1])
    moved = (values.astype(np.float64) * (1 + amount * parts)).astype(values.dtype)
    tensor.CopyFrom(numpy_helper.from_array(moved, weight))
    onnx.save(model, target)
    return target


def outputs_pass(spec: CompareSpec) -> bool:
    """Whether the outputs pass their tolerances."""
    result = run_action("compare", replace(spec, marks=type(spec.marks)()), "layers").result
    return msgspec.convert(result, CompareResult).passed


@dataclass(frozen=True)
class Drift:
    """How a drift over versions went: the first version whose outputs fail, the first that a check catches (None: no
    version), and the layers that these checks name first."""

    fails: int | None
    caught: int | None
    named: str = ""
    planted: str = ""
    cause: str = ""


def failing_amount(spec: CompareSpec, weight: str, folder: Path) -> float | None:
    """The amount of drift from which on the outputs fail, to 5 %; None where none up to 1 does."""
    source = Path(str(spec.model))

    def passes(amount: float) -> bool:
        made = drifted(source, weight, amount, folder / "tried.onnx")
        return outputs_pass(replace(spec, model=str(made)))

    low, high = 0.0, 1e-6
    while passes(high):
        low, high = high, high * 8
        if high > 1:
            return None
    while high > 1.05 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return high


def drift(spec: CompareSpec, weight: str, folder: Path, versions: int = _PARTS) -> Drift:
    """Drift evenly over some versions, of which the last is the first whose outputs fail, and check each of them."""
    file, source = folder / "kept.baseline", Path(str(spec.model))
    accept(spec, file)
    most = failing_amount(spec, weight, folder)
    if most is None:
        return Drift(None, None)
    fails = caught = None
    named = cause = ""
    for version in range(1, versions + 1):
        made = drifted(source, weight, most * version / versions, folder / f"version{version}.onnx")
        asked = replace(spec, model=str(made))
        found = check(asked, file)
        if caught is None and not found.result.passed and found.result.first:
            caught, named, cause = version, found.result.first.layer, found.result.first.cause
        if fails is None and not outputs_pass(asked):
            fails = version
    return Drift(fails, caught, named, maker_of(source, weight), cause)


def rules(tolerance: float | None) -> ToleranceSpec:
    """A tolerance for all tensors; None: what rounding explains."""
    if tolerance is None:
        return ToleranceSpec(auto=True)
    return ToleranceSpec(atol={"": tolerance}, rtol={"": tolerance})


def chosen(names: Sequence[str], parts: Sequence[float]) -> list[str]:
    """Of a sequence the items at these parts of its length."""
    return [names[min(len(names) - 1, int(part * len(names)))] for part in parts] if names else []
