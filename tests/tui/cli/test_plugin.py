"""`layerwise plugin` and `template`, as processes, with pattern files of users; the real Polygraphy reads our files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from support import models
from support.cli import layerwise, polygraphy

FUSED = """
import onnx_graphsurgeon as gs

def get_plugin_metadata():
    return {"name": "fused", "op": "FusedMatMul"}

def get_plugin_pattern():
    pattern = gs.GraphPattern()
    x, w, b = pattern.variable(), pattern.variable(), pattern.variable()
    product = pattern.add("product", "MatMul", inputs=[x, w])
    pattern.set_output_tensors([pattern.add("sum", "Add", inputs=[product, b])])
    return pattern
"""
MATCHING = """
def get_matching_subgraphs(graph):
    return [
        {
            "inputs": [tensor.name for tensor in match.inputs],
            "outputs": [tensor.name for tensor in match.outputs],
            "attributes": {"width": match.inputs[1].values.shape[0], "largest": abs(match.inputs[1].values).max()},
        }
        for match in get_plugin_pattern().match_all(graph)
    ]
"""
RELU = """
def get_plugin_metadata():
    return {"name": "relu", "op": "FastRelu"}

def get_matching_subgraphs(graph):
    return [
        {"inputs": [node.inputs[0].name], "outputs": [node.outputs[0].name], "attributes": {}}
        for node in graph.nodes if node.op == "Relu"
    ]

def replace_with_plugin(graph, input_tensors, output_tensors, attrs, op):
    node = output_tensors[0].inputs[0]
    node.op = op
    return node.name.startswith("/fc0")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.save(models.mlp(width=32), tmp_path / "m.onnx")
    for name, text in (("fused", FUSED + MATCHING), ("relu", RELU), ("bare", FUSED.replace("fused", "bare"))):
        (tmp_path / "plugins" / name).mkdir(parents=True)
        (tmp_path / "plugins" / name / "pattern.py").write_text(text)
    return tmp_path


def plugin(folder: Path, what: str, *words: str, code: int = 0) -> str:
    done = layerwise("plugin", what, "m.onnx", "--plugin-dir", "plugins", *words, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def test_list_counts_matches(folder: Path) -> None:
    assert "{'bare': 3, 'fused': 3, 'relu': 3}" in plugin(folder, "list")
    assert "{'relu': 3}" in plugin(folder, "list", "--include", "relu")
    assert "{'bare': 3, 'relu': 3}" in plugin(folder, "list", "--exclude", "fused")
    assert not (folder / "config.yaml").exists()


def test_what_is_matched_is_replaced_and_weights_are_kept(folder: Path) -> None:
    assert "config.yaml" in plugin(folder, "match", "--include", "fused")
    said = plugin(folder, "replace", "-o", "r.onnx")
    assert "replaced 3 instances of fused plugin" in said
    model = onnx.load(folder / "r.onnx")
    assert ops(folder / "r.onnx") == ["FusedMatMul", "Relu"] * 3
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(folder / "m.onnx").graph.initializer}
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), weights[tensor.name])
    first = next(node for node in model.graph.node if "a0" in node.output)
    values = {a.name: onnx.helper.get_attribute_value(a) for a in first.attribute}
    assert list(first.input) == ["x", "w0", "b0"] and values["width"] == 32
    assert values["largest"] == pytest.approx(np.abs(weights["w0"]).max())


def test_a_plugins_own_replacement_is_used_and_what_it_declines_is_told(folder: Path) -> None:
    plugin(folder, "match", "--include", "relu", "-o", "relu.yaml")
    said = plugin(folder, "replace", "--config", "relu.yaml", "-o", "r.onnx")
    assert "replaced 1 instances of relu plugin" in said and "not all instances" in said
    assert ops(folder / "r.onnx").count("FastRelu") == 3


def test_polygraphy_replaces_by_our_file_and_we_by_its(folder: Path) -> None:
    plugin(folder, "match", "--include", "fused", "-o", "ours.yaml")
    line = ("m.onnx", "--plugin-dir", "plugins", "--include", "fused", "-o", "theirs.yaml")
    text = (folder / "plugins" / "fused" / "pattern.py").read_text().replace(".max()}", ".max().item()}")
    (folder / "plugins" / "fused" / "pattern.py").write_text(text)
    done = polygraphy("plugin", "match", *line, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "theirs.yaml").read_text() == (folder / "ours.yaml").read_text()
    done = polygraphy("plugin", "replace", "m.onnx", "--plugin-dir", "plugins", "--config", "ours.yaml", "-o",
                      "theirs.onnx", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    plugin(folder, "replace", "--config", "theirs.yaml", "-o", "ours.onnx")
    ours, theirs = (onnx.load(folder / f"{side}.onnx").graph for side in ("ours", "theirs"))
    assert [(n.op_type, list(n.input), list(n.output), list(n.attribute)) for n in ours.node] == [
        (n.op_type, list(n.input), list(n.output), list(n.attribute)) for n in theirs.node
    ]
    assert {t.name for t in ours.initializer} == {t.name for t in theirs.initializer}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("def get_plugin_metadata(): return {}", "neither get_matching_subgraphs nor get_plugin_pattern"),
        ("def get_matching_subgraphs(graph): return 1 / 0", "pattern.py, line 1, in get_matching_subgraphs"),
        ("def get_matching_subgraphs(graph): return [{'inputs': 3}]", "an instance has inputs, outputs"),
        ("raise SystemExit(0)", "SystemExit"),
        ("def get_matching_subgraphs(graph): return [{'inputs': ['x'], 'outputs': ['y']}]", "no get_plugin_metadata"),
    ],
)
def test_scripts_that_are_wrong_are_told(folder: Path, script: str, told: str) -> None:
    (folder / "plugins" / "relu" / "pattern.py").write_text(script)
    done = layerwise("plugin", "list", "m.onnx", "--plugin-dir", "plugins", "--include", "relu", cwd=folder)
    assert done.returncode in (1, 2) and told in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("- [", "not YAML"),
        ("!!python/object/apply:os.system ['touch x']", "not YAML"),
        ("name: ../fused\nop: A\ninstances: []", "that of its folder"),
        ("name: fused\nop: A\ninstances:\n- inputs: [nothing]\n  outputs: [y]", "no tensor 'nothing'"),
        ("name: fused", "an op and a list of instances"),
    ],
)
def test_configurations_that_are_wrong_are_told(folder: Path, config: str, told: str) -> None:
    (folder / "config.yaml").write_text(config)
    assert told in plugin(folder, "replace", "-o", "r.onnx", code=1)
    assert not (folder / "r.onnx").exists() and not (folder / "x").exists()


def test_what_a_command_reads_is_not_overwritten_unasked_and_wrong_requests_are_told(folder: Path) -> None:
    (folder / "config.yaml").write_text("mine")
    plugin(folder, "match", "--include", "relu")
    assert (folder / "config.yaml").read_text() != "mine"
    assert "say --overwrite" in plugin(folder, "replace", "-o", "m.onnx", code=2)
    assert "there is no plugin 'nothing'" in plugin(folder, "list", "--include", "nothing", code=2)
    assert "-o/--output" in plugin(folder, "autotune", code=2)
    assert "is read by this command" in plugin(folder, "autotune", "-o", "m.onnx", code=2)
    assert "at least 1 is needed" in plugin(folder, "autotune", "-o", "t.onnx", "--max-combinations", "0", code=2)
    empty = layerwise("plugin", "list", "m.onnx", "--plugin-dir", ".", "--json", cwd=folder)
    assert empty.returncode == 2


def test_the_script_of_the_template_runs(folder: Path) -> None:
    done = layerwise("template", "onnx-gs", "m.onnx", "-o", "edit.py", "--onnx-outputs", "h0", "y", cwd=folder)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([sys.executable, "edit.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    model = onnx.load(folder / "m_updated.onnx")
    assert [(v.name, v.type.tensor_type.elem_type) for v in model.graph.output] == [
        ("h0", TensorProto.FLOAT),
        ("y", TensorProto.FLOAT),
    ]
    again = layerwise("template", "onnx-gs", "m.onnx", "-o", "m.onnx", cwd=folder)
    assert again.returncode == 2 and "say --overwrite" in again.stderr
    missing = layerwise("template", "onnx-gs", "none.onnx", "-o", "none.py", cwd=folder)
    assert missing.returncode == 2 and not (folder / "none.py").exists()


def test_without_tensorrt_the_matches_are_written_and_what_is_missing_is_told(folder: Path) -> None:
    only = ("--include", "relu", "-o", "t.onnx")
    assert "TensorRT cannot be imported" in plugin(folder, "autotune", *only, code=1)
    matched = (folder / "config.yaml").read_text()
    plugin(folder, "match", "--include", "relu", "-o", "same.yaml")
    assert matched == (folder / "same.yaml").read_text() and not (folder / "t.onnx").exists()
    plugin(folder, "autotune", *only, "--skip-autotuning", "--save-config-yaml", "c.yaml")
    assert (folder / "c.yaml").read_text() == matched
    plugin(folder, "autotune", *only, "--skip-autotuning", "--load-config-yaml", "c.yaml")
