"""An FP16 model, as converters make it, against its FP32 original: what a mask is made of is no fault."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.locating import ORT, between, run_locate
from support.models import from_text, with_weights

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def masked(kind: int, hidden: float, scale: float = 0.5) -> onnx.ModelProto:
    """x [4, 8] and keep [4, 8] → y: x · w, masked, its Softmax, times w; inner tensors of type `kind`."""
    dtype = np.float32 if kind == FLOAT else np.float16
    make, rng = helper.make_node, np.random.default_rng(2)
    own = {"w": rng.standard_normal((8, 8)) / 3, "hidden": hidden, "scale": scale, "zero": 0.0}
    nodes = [
        make("Cast", ["x"], ["x_half"], "cast", to=kind), make("MatMul", ["x_half", "w"], ["scores"], "scores"),
        make("Where", ["keep", "zero", "hidden"], ["mask"], "mask"),
        make("Mul", ["scores", "scale"], ["scaled"], "scale"),
        make("Add", ["scaled", "mask"], ["sum"], "add"), make("Softmax", ["sum"], ["soft"], "soft", axis=-1),
        make("MatMul", ["soft", "w"], ["out"], "out"), make("Cast", ["out"], ["y"], "back", to=FLOAT),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, t, [4, 8]) for n, t in (("x", FLOAT), ("keep", TensorProto.BOOL))]
    weights = [numpy_helper.from_array(np.asarray(value, dtype), name) for name, value in own.items()]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [4, 8])]
    graph = helper.make_graph(nodes, "masked", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("hidden", "scale", "accused"), [(-1e4, 0.5, []), (-65504.0, 0.5, []), (-1e4, 0.6, ["scale"])])
def test_a_narrower_mask_is_not_accused(hidden: float, scale: float, accused: list[str], tmp_path: Path) -> None:
    onnx.save(masked(HALF, hidden, scale), tmp_path / "half.onnx")
    onnx.save(masked(FLOAT, float(np.finfo(np.float32).min)), tmp_path / "whole.onnx")
    rng = np.random.default_rng(0)
    keep = rng.random((4, 8)) < 0.6
    keep[:, 0] = True
    np.savez(tmp_path / "in.npz", x=rng.standard_normal((4, 8)).astype(np.float32), keep=keep)
    for observe in ("auto", "executed"):
        spec = CompareSpec(
            model=str(tmp_path / "half.onnx"), observe=observe, feeds=FeedSpec(files=[str(tmp_path / "in.npz")]),
            runners=[ORT, msgspec.structs.replace(ORT, model=str(tmp_path / "whole.onnx"))],
        )  # fmt: skip
        found = run_locate(LocateSpec(compare=spec))
        named = [suspect["node"] for suspect in found.suspects if suspect["diagnosis"] != "clean"]
        assert named[:1] == accused, (observe, found.suspects)


def network(kind: str, *, gain: str = "", turned: str = "1, 0, 2") -> onnx.ModelProto:
    """x [3, 2, 256] → y: normalised, a product, a sum, its first axes swapped. kind: FLOAT, or FLOAT16 with inner
    tensors of other names; gain: the tensor that is multiplied by 1.01; turned: the axes, "" without a Transpose."""
    half, nodes = kind == "FLOAT16", []
    own = {each: f"{each}2" if half else each for each in "xadey"}
    own = own if turned else {**own, "e": own["y"]}
    for op, reads, name in (
        ("LayerNormalization", "{x}, s, t", "a"),
        ("MatMul", "{a}, w", "d"),
        ("Add", "{d}, v", "e"),
    ):
        nodes.append(f"[{name}] {own[name]}{'0' if gain == name else ''} = {op}({reads.format(**own)})")
        if gain == name:
            nodes.append(f"[gain] {own[name]} = Mul({own[name]}0, k)")
    if turned:
        nodes.append(f"[turn] f = Transpose<perm = [{turned}]>({own['e']}) [join] {own['y']} = Reshape(f, shape)")
    shape = "2, 48" if turned else "3, 2, 16"
    head, tail = ("x2 = Cast<to = 10>(x)", "y = Cast<to = 1>(y2)") if half else ("", "")
    model = from_text(f"g (float[3, 2, 256] x) => (float[{shape}] y) {{ {head} {' '.join(nodes)} {tail} }}")
    random = np.random.default_rng(3)
    held = {"s": 1 + random.random(256) / 4, "t": random.random(256) / 4, "w": random.standard_normal((256, 16)) / 8,
            "v": random.standard_normal(16) / 4, "k": np.array(1.01)}  # fmt: skip
    held = {
        name: value.astype(np.float16 if half else np.float32) for name, value in held.items() if name != "k" or gain
    }
    return with_weights(model, **held, **({"shape": np.int64([2, 48])} if turned else {}))


FEED = {"x": np.random.default_rng(5).standard_normal((3, 2, 256)).astype(np.float32)}


@pytest.mark.parametrize(("gain", "turned"), [("a", "1, 0, 2"), ("d", "1, 0, 2"), ("d", "")])
@pytest.mark.parametrize("side", [0, 1])
def test_a_hundredth_too_much_is_no_rounding_of_fp16(gain: str, turned: str, side: int, tmp_path: Path) -> None:
    """The graphs differ there in a factor alone, or in a Cast: both add up in the same order."""
    pair = network("FLOAT", gain=gain, turned=turned), network("FLOAT16", turned=turned)
    found = between(*(pair if side == 0 else pair[::-1]), tmp_path, FEED)
    assert [row["diagnosis"] for row in found.suspects] == ["kernel"]
    if side == 0:
        assert "gain" in [node["node"] for node in found.suspects[0]["region"]]


def test_a_transpose_that_does_nothing_is_not_taken_for_the_tensor_that_it_reads(tmp_path: Path) -> None:
    found = between(network("FLOAT", turned="0, 1, 2"), network("FLOAT16"), tmp_path, FEED)
    assert "turn" in [node["node"] for node in found.suspects[0]["region"]]


def test_a_clean_form_in_fp16_accuses_nobody(tmp_path: Path) -> None:
    assert between(network("FLOAT"), network("FLOAT16"), tmp_path, FEED).nodes == []
