"""The surgeon's commands, as people type them."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support import models, surgeon_zoo
from support.cli import layerwise
from support.models import from_text
from support.surgeon_sides import feed_of, outputs_of, same


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.save(models.mlp(), tmp_path / "model.onnx")
    models.save(surgeon_zoo.expanding(), tmp_path / "grows.onnx")
    return tmp_path


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def test_extract_prints_what_polygraphy_prints_and_refuses_to_overwrite_what_it_reads(folder: Path) -> None:
    line = ("surgeon", "extract", "model.onnx", "--inputs", "h0:auto:auto", "--outputs", "a1:auto", "-o", "part.onnx")
    done = layerwise(*line, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "[I] Loading model: model.onnx\n[I] Original Model:\n    Name: mlp | ONNX Opset: 21" in text
    assert "[I] Saving ONNX model to: part.onnx\n[I] New Model:" in text
    assert "{h0 [dtype=float32, shape=('batch', 16)]}" in text and "---- 2 Node(s) ----" in text
    assert ops(folder / "part.onnx") == ["MatMul", "Add"]
    again = layerwise(*line[:-1], "model.onnx", cwd=folder)
    assert again.returncode == 2 and "model.onnx is read by this command" in again.stderr
    assert layerwise(*line, cwd=folder).returncode == 0
    assert layerwise(*line[:-1], "model.onnx", "--overwrite", cwd=folder).returncode == 0
    assert ops(folder / "model.onnx") == ["MatMul", "Add"]


def test_extract_takes_shapes_as_given_and_says_what_is_wrong(folder: Path) -> None:
    done = layerwise(
        "surgeon", "extract", "model.onnx", "--inputs", "h0:['n',16]:float32", "--outputs", "h1", "-o", "a.onnx",
        cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    value = onnx.load(folder / "a.onnx").graph.input[0]
    assert value.type.tensor_type.shape.dim[0].dim_param == "n"
    cases = [
        (["--outputs", "hh1:auto"], "Tensor: hh1 does not exist in the model; did you mean h1"),
        (["--inputs", "h1:auto:auto", "--outputs", "h0:auto"], "the outputs need the tensor x too"),
        (["--inputs", "h0:[4,16]:float99", "--outputs", "h1:auto"], "unknown data type 'float99'"),
    ]
    for words, message in cases:
        done = layerwise("surgeon", "extract", "model.onnx", *words, "-o", "b.onnx", cwd=folder)
        assert done.returncode == 2 and message in done.stdout + done.stderr and "Traceback" not in done.stderr
        assert not (folder / "b.onnx").exists()
    missing = layerwise("surgeon", "extract", "model.onnx", "--inputs", "x", "--outputs", "h0", cwd=folder)
    assert missing.returncode == 2 and "-o/--output" in missing.stderr


def test_extract_runs_the_model_where_inference_does_not_help(folder: Path) -> None:
    model = from_text(
        """hidden (float[batch,4] x) => (float[a,b] y) {
            [own] c = com.microsoft.Gelu(x) [act] y = Relu(c)
        }"""
    )
    model.opset_import.add(domain="com.microsoft", version=1)
    models.save(model, folder / "hidden.onnx")
    line = ("surgeon", "extract", "hidden.onnx", "--inputs", "c:auto:auto", "-o", "part.onnx")
    done = layerwise(*line, "--model-input-shapes", "x:[3,4]", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Some tensor shapes or dtypes are missing in the model: c" in done.stdout
    dims = onnx.load(folder / "part.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [3, 4]
    forced = ("surgeon", "extract", "model.onnx", "--inputs", "h0:auto:auto", "--force-fallback-shape-inference")
    done = layerwise(*forced, "--model-inputs", "x:[5,16]", "-o", "static.onnx", cwd=folder)
    assert done.returncode == 0 and "Forcing fallback shape inference" in done.stdout
    dims = onnx.load(folder / "static.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [5, 16]


def test_sanitize_folds_with_and_without_a_threshold(folder: Path) -> None:
    done = layerwise("surgeon", "sanitize", "grows.onnx", "--fold-constants", "-o", "clean.onnx", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[I] Folding Constants | Pass 1\n" in done.stdout
    assert "Total Nodes | Original:     3, After Folding:     2 |     1 Nodes Folded" in done.stdout
    assert ops(folder / "clean.onnx") == ["Expand", "Add"]
    done = layerwise(
        "surgeon", "sanitize", "grows.onnx", "--fold-constants", "--fold-size-threshold", "16M", "--num-passes", "1",
        "--partitioning", "recursive", "--save-external-data", "weights.bin", "-o", "whole.onnx", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0 and "Pass 2" not in done.stdout, done.stdout
    assert ops(folder / "whole.onnx") == ["Add"] and (folder / "weights.bin").stat().st_size >= 1 << 20
    feed = feed_of(folder / "grows.onnx")
    before = outputs_of(folder / "grows.onnx", feed)
    assert same(outputs_of(folder / "whole.onnx", feed), before)
    assert same(outputs_of(folder / "clean.onnx", feed), before)


def test_sanitize_changes_shapes_outputs_and_precision(folder: Path) -> None:
    done = layerwise(
        "surgeon", "sanitize", "model.onnx", "--override-input-shapes", "x:[2,16]", "--outputs", "h*", "y",
        "--exclude-outputs", "h1", "--cleanup", "--toposort", "-o", "clean.onnx", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    graph = onnx.load(folder / "clean.onnx").graph
    assert [value.name for value in graph.output] == ["h0", "y"]
    assert [d.dim_value for value in graph.value_info for d in value.type.tensor_type.shape.dim[:1]] == [2] * 7
    done = layerwise("surgeon", "sanitize", "model.onnx", "--fp-to-fp16", "-o", "half.onnx", cwd=folder)
    assert done.returncode == 0
    kinds = {tensor.data_type for tensor in onnx.load(folder / "half.onnx").graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT16}


def test_sanitize_limits_unbounded_tensors(folder: Path) -> None:
    model = from_text(
        """range (float[n] x) => (int64[m] y) <int64 zero = {0}, int64 one = {1}> {
            [find] w = NonZero(x) [count] c = Size(w) [range] y = Range(zero, c, one)
        }"""
    )
    models.save(model, folder / "dds.onnx")
    done = layerwise("surgeon", "sanitize", "dds.onnx", "--set-unbounded-dds-upper-bound", "1000", "c:4",
                     "-o", "limited.onnx", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Set tensor upper bounds: {'c': 4}" in done.stdout
    outputs = outputs_of(folder / "limited.onnx", {"x": np.ones(9, np.float32)})
    assert outputs[0].tolist() == [0, 1, 2, 3]


def test_folding_options_without_folding_are_told(folder: Path) -> None:
    done = layerwise("surgeon", "sanitize", "model.onnx", "--num-passes", "2", "-o", "clean.onnx", cwd=folder)
    assert done.returncode == 0
    assert "Argument: '--num-passes' will be ignored since constant folding is not enabled." in done.stdout


def test_insert_prune_strip_and_reconstruct(folder: Path) -> None:
    done = layerwise("surgeon", "insert", "model.onnx", "--inputs", "m0", "--outputs", "m0", "--op", "LeakyRelu",
                     "--attrs", "alpha=0.5", "--name", "probe", "-o", "i.onnx", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert onnx.load(folder / "i.onnx").graph.node[1].name == "probe"
    done = layerwise("surgeon", "prune", "model.onnx", "-o", "sparse.onnx", cwd=folder)
    assert done.returncode == 0 and "Finished pruning 3 weights" in done.stdout
    done = layerwise("surgeon", "prune", "model.onnx", "--remove-node-types", "Relu", "-o", "linear.onnx", cwd=folder)
    assert done.returncode == 0 and ops(folder / "linear.onnx") == ["MatMul", "Add"] * 3
    done = layerwise("surgeon", "prune", "model.onnx", "--remove-node-types", "CustomOp", "-o", "l.onnx", cwd=folder)
    assert done.returncode == 1 and "no node is of that type" in done.stderr and "Traceback" not in done.stderr
    (folder / "keep.txt").write_text("w1\nnonesuch\n")
    done = layerwise("surgeon", "weight-strip", "sparse.onnx", "--exclude-list", "keep.txt", "-o", "bare.onnx",
                     cwd=folder)  # fmt: skip
    assert done.returncode == 0 and "Finished stripping 2 weights" in done.stdout and "nonesuch" in done.stdout
    done = layerwise("surgeon", "weight-reconstruct", "bare.onnx", "-o", "again.onnx", cwd=folder)
    assert done.returncode == 0 and "Finished reconstructing 2 weights" in done.stdout
    outputs_of(folder / "again.onnx", feed_of(folder / "model.onnx"))


def test_bad_files_and_interrupted_requests(folder: Path) -> None:
    (folder / "bad.onnx").write_bytes(b"not a model")
    for tool in ("extract", "sanitize", "prune", "weight-strip", "weight-reconstruct"):
        done = layerwise("surgeon", tool, "bad.onnx", "-o", "out.onnx", cwd=folder)
        assert done.returncode in (1, 2) and "bad.onnx" in done.stderr and "Traceback" not in done.stderr
    done = layerwise("surgeon", "sanitize", "model.onnx", "-o", "model.onnx", cwd=folder)
    assert done.returncode == 2 and "is read by this command" in done.stderr


def test_names_that_are_no_text(folder: Path) -> None:
    data = (folder / "model.onnx").read_bytes()
    (folder / "bad.onnx").write_bytes(data.replace(b"/fc1/MatMul", b"/fc1/\xff\xfe\xff\xff\xff\xff"))
    for words in (["extract"], ["sanitize", "--fold-constants"]):
        done = layerwise("surgeon", words[0], "bad.onnx", *words[1:], "-q", "-q", "-o", "out.onnx", cwd=folder)
        assert done.returncode == 1 and "bad.onnx: damaged ONNX model" in done.stderr, done.stderr


def test_a_weight_without_a_name(folder: Path) -> None:
    model = from_text("g (float[4] x) => (float[4] y) <float top = {0.9}> { c = Clip(x, , top) y = Neg(c) }")
    model.graph.initializer.add(data_type=1, float_data=[1.0])
    models.save(model, folder / "odd.onnx")
    for words in (["extract", "--outputs", "c:auto"], ["extract", "--outputs", "c", "--copy-weights"],
                  ["sanitize", "--fold-constants"]):  # fmt: skip
        done = layerwise("surgeon", words[0], "odd.onnx", *words[1:], "-o", "part.onnx", "--overwrite", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert [tensor.name for tensor in onnx.load(folder / "part.onnx").graph.initializer] == ["top"]


def test_names_with_colons_brackets_and_escapes(folder: Path) -> None:
    model, name = models.mlp(), "a:b[0]:c\x1b[31m"
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [name if other == "h0" else other for other in names]
    models.save(model, folder / "odd.onnx")
    for words in (["--inputs", f"{name}:auto:auto"], ["--outputs", name], ["--outputs", f"{name}:float32"]):
        done = layerwise("surgeon", "extract", "odd.onnx", *words, "-o", "part.onnx", "--overwrite", cwd=folder)
        assert done.returncode == 0 and "\x1b" not in done.stdout, done.stdout + done.stderr
        graph = onnx.load(folder / "part.onnx").graph
        assert name in [value.name for value in (*graph.input, *graph.output)]


def test_a_folder_that_is_not_there_or_not_writable(folder: Path) -> None:
    source = models.write_sparse(folder / "big.onnx", 65)
    (folder / "file").write_text("")
    for model in ("model.onnx", source.name):
        done = layerwise("surgeon", "extract", model, "-o", "file/part.onnx", cwd=folder)
        assert done.returncode == 1 and "cannot be written" in done.stderr and "Traceback" not in done.stderr
    done = layerwise("surgeon", "extract", source.name, "-o", "part.onnx", cwd=folder)
    assert done.returncode == 0 and "Weights were not copied: they are read from big.onnx" in done.stdout
    assert (folder / "part.onnx").stat().st_size < 10_000
