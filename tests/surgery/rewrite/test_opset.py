"""Opset conversion: the result runs and gives the same numbers, or the unsupported operator is named."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from support import models
from support.versions import installed

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.opset import convert_opset, opset_of


def run(structure: Structure, feed: dict[str, np.ndarray], kind: Any = "onnxrt") -> dict[str, np.ndarray]:
    loadable = Loadable(data=structure.proto().SerializeToString(), folder=structure.folder)
    with open_runner(RunnerSpec(kind=kind), loadable) as runner:
        return dict(runner.infer(feed).outputs)


def softmax(opset: int, attributes: str = "") -> Structure:
    text = f"g (float[2,3,4] x) => (float[2,3,4] y) {{ [soft] y = Softmax{attributes}(x) }}"
    return Structure.from_proto(models.from_text(text, opset=opset))


NEWEST = 23 if installed("onnxruntime") >= (1, 22) else 22  # that onnxruntime reads


@settings(max_examples=15)
@given(st.sampled_from(["mlp", "conv_net"]), st.integers(8, NEWEST))
def test_any_opset_computes_the_same(name: str, version: int) -> None:
    model = getattr(models, name)()
    given_, changed = Structure.from_proto(model), convert_opset(Structure.from_proto(model), version)
    assert opset_of(changed) == version
    onnx.checker.check_model(changed.proto(), full_check=True)
    rng = np.random.default_rng(version)
    shape = [2, 16] if name == "mlp" else [1, 3, 16, 16]
    feed = {model.graph.input[0].name: rng.standard_normal(shape).astype(np.float32)}
    for output, want in run(given_, feed).items():
        np.testing.assert_allclose(run(changed, feed)[output], want, rtol=1e-5, atol=1e-6)


def test_weights_stay_in_their_file(tmp_path: Path) -> None:
    with ModelFile(models.save(models.mlp(width=32), tmp_path / "m.onnx")) as file:
        structure = Structure.open(file)
    changed = convert_opset(structure, 22)
    outside = {t.name for t in changed.initializers.values() if t.data_location == TensorProto.EXTERNAL}
    assert outside == {"w0", "w1", "w2"} and changed.folder == tmp_path
    feed = {"x": np.ones((1, 32), np.float32)}
    np.testing.assert_array_equal(run(changed, feed)["y"], run(structure, feed)["y"])


def test_softmax_keeps_its_meaning_up_and_down() -> None:
    feed = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
    old = softmax(11)
    np.testing.assert_allclose(run(convert_opset(old, 13), feed)["y"], run(old, feed)["y"], rtol=1e-6)
    new = softmax(13)
    np.testing.assert_allclose(run(convert_opset(new, 11), feed)["y"], run(new, feed)["y"], rtol=1e-6)
    with pytest.raises(LayerwiseError, match=r"Softmax 'soft'.*axis"):
        convert_opset(softmax(13, "<axis=1>"), 11)


def test_functions_are_inlined_and_other_domains_kept() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 17, "mine" : 1]>
        g (float[2] x) => (float[2] y) { h = mine.Double(x)  y = mine.Op(h) }
        <domain: "mine", opset_import: ["" : 17]> Double (x) => (y) { y = Add(x, x) }"""
    )
    notes: list[str] = []
    changed = convert_opset(Structure.from_proto(model), 21, notes.append)
    assert [(node.domain, node.op_type) for node in changed.nodes] == [("", "Add"), ("mine", "Op")]
    assert changed.opsets == {"": 21, "mine": 1} and "inlined" in notes[0]


def test_unsupported_operators_are_named() -> None:
    text = "g (float[4] x) => (float[2] y, float[2] z) { [cut] y, z = Split<num_outputs=2>(x) }"
    with pytest.raises(LayerwiseError, match=r"opset 18 to 17: .*Split"):
        convert_opset(Structure.from_proto(models.from_text(text, opset=18)), 17)
    with pytest.raises(LayerwiseError, match="there is no opset 1000"):
        convert_opset(Structure.from_proto(models.mlp()), 1000)


def test_types_missing_from_an_older_opset_are_rejected() -> None:
    text = "g (bfloat16[2] x) => (bfloat16[2] y) { y = Add(x, x) }"
    with pytest.raises(LayerwiseError, match="opset 12 does not take the model's types"):
        convert_opset(Structure.from_proto(models.from_text(text, opset=13)), 12)


def test_the_given_structure_is_not_modified() -> None:
    structure = softmax(13)
    before = structure.proto().SerializeToString()
    convert_opset(structure, 11)
    assert structure.proto().SerializeToString() == before


def test_new_attributes_with_default_values_are_removed() -> None:
    text = "g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> {"
    text += " [mean] y = ReduceMean<noop_with_empty_axes=%d>(x, a) }"
    model = Structure.from_proto(models.from_text(text % 0, opset=18))
    older = convert_opset(model, 17)
    onnx.checker.check_model(older.proto())
    feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    np.testing.assert_array_equal(run(older, feed)["y"], run(model, feed)["y"])
    with pytest.raises(LayerwiseError, match=r"ReduceMean 'mean'.*'noop_with_empty_axes'"):
        convert_opset(Structure.from_proto(models.from_text(text % 1, opset=18)), 17)


@pytest.mark.skipif(
    "inline_schema_functions" not in inspect.signature(onnx.inliner.inline_selected_functions).parameters,
    reason="this onnx does not write operators out",
)
def test_operators_missing_from_an_older_opset_are_expanded() -> None:
    text = """g (float[2,4] x) => (float[2,2,2] y) <float[4] s = {1, 2, 3, 4}, int64[3] to = {2, 2, 2}> {
        [act] a = Gelu(x)  [norm] n = LayerNormalization(a, s)  [shape] y = Reshape<allowzero=1>(n, to) }"""
    model = Structure.from_proto(models.from_text(text, opset=20))
    notes: list[str] = []
    older = convert_opset(model, 13, notes.append)
    onnx.checker.check_model(older.proto(), full_check=True)
    assert not {"Gelu", "LayerNormalization"}.intersection(node.op_type for node in older.nodes)
    assert any("no equal of Gelu" in note for note in notes)
    feed = {"x": np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(older, feed)["y"], run(model, feed)["y"], rtol=1e-4, atol=1e-5)
