"""Each tensor of a model is either in a row that compares something or listed as not compared, never both."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from support import models
from support.comparing import OFF, ORT, REFERENCE, run_compare
from support.faults.zoo.masked import masked
from support.graphs import random_model
from support.layers import overflowing

from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, Observing

Maker = Callable[[], onnx.ModelProto]


def quantised() -> onnx.ModelProto:
    """A product between Q and DQ, and one of integers."""
    made = models.from_text(
        """g (float[2,4] x) => (float[2,4] y) {
            q, s, z = DynamicQuantizeLinear(x)  d = DequantizeLinear(q, s, z)  m = MatMul(d, w)
            i = MatMulInteger(q, wq, z)  f = Cast<to=1>(i)  p = QuantizeLinear(m, one)  e = DequantizeLinear(p, one)
            y = Add(e, f) }""".replace("  ", " ")
    )
    whole = np.arange(16, dtype=np.int8).reshape(4, 4)
    return models.with_weights(made, w=whole.astype(np.float32), wq=whole, one=np.float32(1))


def optional() -> onnx.ModelProto:
    """An optional, a sequence that is joined again, and a NaN that is taken away."""
    return models.from_text(
        """g (float[2,4] x) => (float[4,4] y, float[2,4] w) {
            r = Relu(x) s = SequenceConstruct(x, r) y = ConcatFromSequence<axis=0>(s)
            d = Div(r, r) n = IsNaN(d) k = Where(n, x, d) o = Optional(k) w = OptionalGetElement(o) }"""
    )


MODELS: dict[str, Maker] = {
    "dense": models.mlp, "convolutions": models.conv_net, "branches": models.if_model, "loop": models.loop_model,
    "scan": models.scan_model, "sequence": models.sequence_model, "dynamic": models.dynamic_model,
    "function": models.function_model, "strings": models.string_model, "quantised": quantised, "optional": optional,
    "masks": lambda: masked("where -inf").model,
    **{f"random {seed}": lambda seed=seed: random_model(seed) for seed in range(4)},
}  # fmt: skip
SIDES: dict[str, tuple[RunnerSpec, RunnerSpec, Observing]] = {
    "executed": (ORT, OFF, "executed"), "every": (ORT, REFERENCE, "every"), "marked": (ORT, OFF, "marked"),
}  # fmt: skip


def tensors(model: onnx.ModelProto) -> set[str]:
    """What the nodes of the main graph make, and the outputs."""
    made = {name for node in model.graph.node for name in node.output if name}
    return made | {value.name for value in model.graph.output}


def check(path: Path, first: RunnerSpec, second: RunnerSpec, how: Observing, expected: set[str]) -> None:
    spec = CompareSpec(model=str(path), runners=[first, second], marks=MarkSpec(everything=True), observe=how)
    done = run_compare(spec)
    left = {item["tensor"] for item in done.result["not_compared"]}
    rows = {row["tensor"] for row in done.table()} - left
    named = {element_of(name) if element_of(name) in expected else name for name in rows | left}
    assert named == expected
    assert done.result["n_compared"] == len([row for row in done.table() if row["tensor"] not in left])


@pytest.mark.parametrize("name", MODELS)
def test_all_tensors_are_accounted_for(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    path = models.save(model, tmp_path / "model.onnx")
    for first, second, how in SIDES.values():
        constants = {node.output[0] for node in model.graph.node if node.op_type == "Constant"}
        check(path, first, second, how, tensors(model) - (constants if how == "marked" else set()))


def test_tensors_that_only_the_other_model_has_are_said_too(tmp_path: Path) -> None:
    overflowing(tmp_path / "good.onnx", half=False)
    overflowing(tmp_path / "bad.onnx", half=True)
    expected = tensors(onnx.load(tmp_path / "bad.onnx"))
    check(tmp_path / "bad.onnx", ORT, RunnerSpec(kind="onnxrt", model=str(tmp_path / "good.onnx")), "every", expected)
