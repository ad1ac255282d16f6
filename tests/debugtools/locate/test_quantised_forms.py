"""What onnxruntime's static quantisation makes of networks, held against these: nobody is at fault there."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.aligning import renamed
from support.locating import between
from support.models import from_text, with_weights
from support.quantised import static

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.file import load_map

ENDS = ("x", "y")
FEED = {"x": np.random.default_rng(1).standard_normal((2, 8, 8, 8)).astype(np.float32)}


Shapes = dict[str, tuple[int, ...]]


def weighted(text: str, shapes: Shapes, **constants: Array) -> onnx.ModelProto:
    random = np.random.default_rng(0)
    made = {name: random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])) for name, shape in shapes.items()}
    return with_weights(
        from_text(text, opset=17), **{name: each.astype(np.float32) for name, each in made.items()}, **constants
    )


def residual() -> onnx.ModelProto:
    """Convolutions with a Relu behind each, and behind each sum."""
    text: list[str] = []
    shapes: Shapes = {}
    at = "x"
    for k in range(5):
        text.append(f"""a{k} = Conv <pads = [1, 1, 1, 1]> ({at}, u{k})  b{k} = Relu (a{k})
            c{k} = Conv <pads = [1, 1, 1, 1]> (b{k}, v{k})  s{k} = Add ({at}, c{k})  r{k} = Relu (s{k})""")
        shapes |= {f"u{k}": (8, 8, 3, 3), f"v{k}": (8, 8, 3, 3)}
        at = f"r{k}"
    body = "\n".join(text).replace("  ", "\n")
    head = f"g (float[2,8,8,8] x) => (float[2,8,1,1] y) {{\n{body}\ny = GlobalAveragePool ({at})\n}}"
    return weighted(head, shapes)


def views() -> onnx.ModelProto:
    """A convolution's result taken apart and put together again, in much the same shapes."""
    text = """g (float[2,8,8,8] x) => (float[2,8,8,8] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, u)
        b = Reshape (a, rows)
        c = Reshape (b, again)
        d = Reshape (c, rows)
        e = MatMul (d, v)
        f = Reshape (e, again)
        h = Reshape (f, whole)
        y = Conv <pads = [1, 1, 1, 1]> (h, w)
    }"""
    shapes: Shapes = {"u": (8, 8, 3, 3), "v": (8, 8), "w": (8, 8, 3, 3)}
    numbers = {"rows": [2, 64, 8], "again": [2, 1, 64, 8], "whole": [2, 8, 8, 8]}
    return weighted(text, shapes, **{name: np.array(each) for name, each in numbers.items()})


def masked() -> onnx.ModelProto:
    """Scores of which half are hidden by the lowest number there is, and their softmax."""
    text = """g (float[2,8,8,8] x) => (float[2,8,8,8] y) {
        s = MatMul (x, u)
        m = Add (s, hidden)
        p = Softmax (m)
        y = MatMul (p, v)
    }"""
    hidden = np.triu(np.full((8, 8), np.finfo(np.float32).min), 1)
    return weighted(text, {"u": (8, 8), "v": (8, 8)}, hidden=hidden)


@pytest.mark.parametrize("make", [residual, views], ids=lambda make: make.__name__)
@pytest.mark.parametrize("suspect", ["float", "quantised"])
def test_every_tensor_has_its_counterpart_and_nobody_is_accused(
    make: Callable[[], onnx.ModelProto], suspect: str, tmp_path: Path
) -> None:
    own = make()
    other, names = renamed(static(own, FEED, qdq=True), kept=ENDS)
    models = (own, other) if suspect == "float" else (other, own)
    found = between(*models, tmp_path, FEED, save_align=str(tmp_path / "map.json"))
    assert [row["evidence"] for row in found.suspects if row["diagnosis"] != "saturation"] == []
    pairs = load_map(tmp_path / "map.json").pairs
    made = {name for node in own.graph.node for name in node.output}
    paired = {pair.tensor if suspect == "float" else pair.other for pair in pairs}
    assert made <= paired
    old = {new: name for name, new in names.items()}
    for pair in pairs:
        mine, theirs = (pair.tensor, pair.other) if suspect == "float" else (pair.other, pair.tensor)
        before = old.get(theirs, theirs).removesuffix("_DequantizeLinear_Output")
        if mine in made and make is views:
            assert before == mine, pair


def test_a_mask_in_few_bits_of_the_reference_accuses_nobody_and_is_told(tmp_path: Path) -> None:
    other, _ = renamed(static(masked(), FEED, qdq=True, nodes_to_exclude=[]), kept=ENDS)
    found = between(masked(), other, tmp_path, FEED)
    assert [row["evidence"] for row in found.suspects if row["diagnosis"] != "saturation"] == []
    assert "1 holds a mask's values" in found.result["conclusion"]
