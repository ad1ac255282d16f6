"""What quantisers do on purpose and nobody is accused of: codes for what a rectifier leaves, a few weights off by half
a step, scales along the axis that an operator's attribute says, blocks that end within a row."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.faults.quantised import Planter
from support.locating import between
from support.models import with_weights
from support.products import FEED, WIDTH, drawn, network
from support.quantised import FORMS, bnb4, nbits

LOW, HIGH = "zero", "half"


def model(rectifier: str, scale: float | None, *, bias: float = -1) -> onnx.ModelProto:
    """Two products with a rectifier between them; scale: of the codes that are made of what it reads."""
    codes = "q = QuantizeLinear(a, s, z) r = DequantizeLinear(q, s, z) " if scale else ""
    behind = rectifier.format("r" if scale else "a")
    body = f"m = MatMul(x, w0) [first] a = Add(m, w2) {codes}[behind] b = {behind} [second] y = MatMul(b, w1)"
    made = network(body, [*drawn(2), np.full(32, bias, np.float32)])
    arrays = {"s": np.float32(scale or 1), "z": np.int8(0), LOW: np.float32(0), HIGH: np.float32(0.5)}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items())
    return made


RECTIFIERS = {"Relu({})": 2.0, f"Clip({{}}, {LOW}, {HIGH})": 0.5}
"""Each with the largest value that it leaves."""


@pytest.mark.parametrize("rectifier", RECTIFIERS)
def test_what_a_rectifier_takes_away_is_nobodys_error(rectifier: str, tmp_path: Path) -> None:
    scale = RECTIFIERS[rectifier] / 127
    found = between(model(rectifier, scale), model(rectifier, None), tmp_path, FEED)
    assert found.nodes == [], found.suspects[0]["evidence"]
    assert found.result["quantised"]["wrong"] == 0


@pytest.mark.parametrize("rectifier", RECTIFIERS)
def test_what_it_takes_must_be_held(rectifier: str, tmp_path: Path) -> None:
    scale = RECTIFIERS[rectifier] / 127
    found = between(model(rectifier, scale / 4), model(rectifier, None), tmp_path, FEED)
    assert found.suspects[0]["diagnosis"] == "quantisation"
    found = between(model(rectifier, scale, bias=-0.95), model(rectifier, None), tmp_path, FEED)
    assert found.nodes[0] == "first"


def test_what_another_node_reads_too_must_be_held_below_zero(tmp_path: Path) -> None:
    rectifier = "Relu({0}) [other] o = Add({0}, b)"
    suspect, original = (model(rectifier, scale) for scale in (0.1 / 127, None))
    for made in (suspect, original):
        next(node for node in made.graph.node if node.name == "second").input[0] = "o"
    assert between(suspect, original, tmp_path, FEED).suspects[0]["diagnosis"] == "quantisation"


@pytest.mark.parametrize("steps", [254, 127])  # a quantiser may widen ranges a little, or take 7 bits for a kernel
def test_a_few_weights_may_lie_half_a_step_from_the_original(steps: int, tmp_path: Path) -> None:
    """Of two values in a channel, which reach from end to end, the usual error of a step's rounding is none at all."""
    random = np.random.default_rng(0)
    narrow = random.standard_normal((WIDTH, 2)).astype(np.float32)
    weight = random.uniform(0.2, 1, (2, WIDTH)).astype(np.float32) * np.float32([[-1], [1]])
    scale = ((weight[1] - weight[0]) / steps).astype(np.float32)
    zero = np.rint(-weight[0] / scale).astype(np.uint8)
    codes = np.clip(np.rint(weight / scale) + zero, 0, 255).astype(np.uint8)
    body = "[first] a = MatMul(x, w0) {}[second] y = MatMul(a, {})"
    original = network(body.format("", "w1"), [narrow, weight])
    made = "v = DequantizeLinear <axis = 1> (codes, scale, zero) "
    quantised = with_weights(network(body.format(made, "v"), [narrow]), codes=codes, scale=scale, zero=zero)
    found = between(quantised, original, tmp_path, FEED)
    assert found.nodes == [], found.suspects[0]["evidence"]


def test_scales_of_a_gemm_lie_along_its_output_channels(tmp_path: Path) -> None:
    weights = [drawn(1)[0][:6], np.zeros(6, np.float32)]
    original = network("[only] y = Gemm <transB = 1> (x, w0, w1)", weights)
    assert between(FORMS["qop_channel"](original, FEED), original, tmp_path, FEED).nodes == []


def narrow(seed: int, width: int) -> onnx.ModelProto:
    """Two products with a rectifier between, over a few values."""
    random = np.random.default_rng(seed)
    body = "[first] a = MatMul(x, w0) [behind] b = Relu(a) [second] y = MatMul(b, w1)"
    sizes = ((WIDTH, width), (width, WIDTH))
    return network(body, [random.standard_normal(size).astype(np.float32) for size in sizes])


BLOCKS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "nf4": bnb4,
    "fp4": lambda original: bnb4(original, quant_type=0, block=16),
    "2 bits": lambda original: nbits(original, bits=2),
    "4 bits": lambda original: nbits(original, symmetric=False, block=16),
    "8 bits": lambda original: nbits(original, bits=8),
}


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("form", BLOCKS)
def test_blocks_may_end_within_a_row_or_hold_a_few_values(form: str, width: int, tmp_path: Path) -> None:
    original = narrow(5, width)
    found = between(BLOCKS[form](original), original, tmp_path, FEED)
    assert found.nodes == [], found.suspects[0]["evidence"]
    assert found.result["quantised"]["tensors"] == 2


@pytest.mark.parametrize("kind", ["scale", "nibble order", "codebook"])
@pytest.mark.parametrize("form", ["nf4", "fp4"])
def test_damage_to_blocks_that_end_within_a_row_is_named_first(form: str, kind: str, tmp_path: Path) -> None:
    original = narrow(5, 20)
    damage = next(Planter(BLOCKS[form](original), 3).plants(kind))
    assert between(damage.model, original, tmp_path, FEED).nodes[0] in damage.names, damage.detail


def drawn_as(*sizes: tuple[int, int]) -> list[np.ndarray]:
    """Weights of these sizes, normally distributed."""
    random = np.random.default_rng(5)
    return [(random.standard_normal(size) / np.sqrt(size[0])).astype(np.float32) for size in sizes]


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_one_block_of_many_by_another_scale_is_named(factor: float, tmp_path: Path) -> None:
    body = "[first] a = MatMul(x, w0) [second] y = MatMul(a, w1)"
    original = network(body, drawn_as((WIDTH, 512), (512, WIDTH)))
    quantised = nbits(original, block=16)
    scales = next(tensor for tensor in quantised.graph.initializer if tensor.name == "w1_scales")
    changed = numpy_helper.to_array(scales).copy()
    changed[7, 1] *= factor
    scales.CopyFrom(numpy_helper.from_array(changed, scales.name))
    assert between(quantised, original, tmp_path, FEED).nodes == ["second"]


def test_the_original_of_a_few_values_is_what_its_reader_reads(tmp_path: Path) -> None:
    body = "[first] a = MatMul(x, w0) [second] b = MatMul(a, w1) [third] y = MatMul(b, w2)"
    original = network(body, drawn_as((WIDTH, 1), (1, 4), (4, WIDTH)))
    quantised = nbits(original)
    names = {tensor.name: f"p{number}" for number, tensor in enumerate(quantised.graph.initializer)}
    for tensor in quantised.graph.initializer:
        tensor.name = names[tensor.name]
    for node in quantised.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    found = between(quantised, original, tmp_path, FEED)
    assert found.nodes == [], found.suspects[0]["evidence"]
    assert sorted(row["other"] for row in found.table("quantised")) == ["w0", "w1", "w2"]
