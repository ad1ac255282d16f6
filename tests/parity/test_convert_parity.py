"""`convert --fp-to-fp16` and `inspect sparsity` beside the real Polygraphy's on the same models."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from support import models
from support.cli import layerwise, polygraphy

from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

MAKERS = {"mlp": lambda: models.mlp(width=32), "conv": models.conv_net, "if": models.if_model}
FOUND = re.compile(r"(Found (?:non-)?sparse tensor: \S+|Found: \d+ weight tensor\(s\) eligible for pruning\.)")


def outputs(path: Path, feed: dict[str, Any]) -> dict[str, np.ndarray]:
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
        return dict(runner.infer(feed).outputs)


def feed_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    feed: dict[str, Any] = {}
    for value in model.graph.input:
        shape = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        is_float = value.type.tensor_type.elem_type == TensorProto.FLOAT
        feed[value.name] = rng.standard_normal(shape).astype(np.float32) if is_float else np.ones(shape, bool)
    return feed


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_fp16_models_agree(name: str, tmp_path: Path) -> None:
    model = MAKERS[name]()
    models.save(model, tmp_path / "m.onnx")
    ours = layerwise("convert", "--fp-to-fp16", "-o", "ours.onnx", "m.onnx", cwd=tmp_path)
    theirs = polygraphy("convert", "--fp-to-fp16", "-o", "theirs.onnx", "m.onnx", cwd=tmp_path)
    assert ours.returncode == theirs.returncode == 0, ours.stderr + theirs.stderr
    mine, other = (onnx.load(tmp_path / f"{side}.onnx") for side in ("ours", "theirs"))
    assert [v.type.tensor_type.elem_type for v in (*mine.graph.input, *mine.graph.output)] == [
        v.type.tensor_type.elem_type for v in (*other.graph.input, *other.graph.output)
    ]
    feed = feed_of(model)
    results = {side: outputs(tmp_path / f"{side}.onnx", feed) for side in ("m", "ours", "theirs")}
    for output, want in results["m"].items():
        np.testing.assert_allclose(results["ours"][output], want, atol=2e-2, rtol=2e-2)
        np.testing.assert_allclose(results["theirs"][output], want, atol=2e-2, rtol=2e-2)


def test_convert_to_onnx_alone_gives_the_same_model(tmp_path: Path) -> None:
    models.save(models.conv_net(), tmp_path / "m.onnx")
    for tool, name in ((layerwise, "ours"), (polygraphy, "theirs")):
        assert tool("convert", "m.onnx", "--convert-to", "onnx", "-o", name, cwd=tmp_path).returncode == 0
    ours, theirs = (onnx.load(tmp_path / name) for name in ("ours", "theirs"))
    del theirs.graph.value_info[:]
    del ours.graph.value_info[:]
    assert ours.SerializeToString() == theirs.SerializeToString()


@pytest.mark.parametrize(
    "words", ["convert --onnx-outputs mark all", "surgeon sanitize --outputs mark all", "convert --onnx-outputs m* k*"]
)
def test_outputs_of_constants_are_not_marked(words: str, tmp_path: Path) -> None:
    text = "g (float[2] x) => (float[2] y) { kk = Constant<value = float[2] {1, 2}>() m = Add(x, kk) y = Relu(m) }"
    models.save(models.from_text(text), tmp_path / "m.onnx")
    for tool, name in ((layerwise, "ours"), (polygraphy, "theirs")):
        assert tool(*words.split(), "-o", f"{name}.onnx", "--", "m.onnx", cwd=tmp_path).returncode == 0
    ours, theirs = ([output.name for output in onnx.load(tmp_path / f"{name}.onnx").graph.output]
                    for name in ("ours", "theirs"))  # fmt: skip
    assert ours == theirs and "kk" not in ours


def test_sparsity_is_told_in_the_same_lines(tmp_path: Path) -> None:
    model = models.mlp(width=8)
    for tensor in model.graph.initializer:
        if tensor.name == "w1":
            values = onnx.numpy_helper.to_array(tensor).copy()
            values.reshape(2, 4, 8)[:, 1:3] = 0
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, "w1"))
    models.save(model, tmp_path / "m.onnx")
    found = []
    for tool in (layerwise, polygraphy):
        done = tool("inspect", "sparsity", "m.onnx", cwd=tmp_path)
        assert done.returncode == 0
        found.append(FOUND.findall(done.stdout + done.stderr))
    assert found[0] == found[1] and len(found[0]) == 4
