"""`layerwise convert` and `inspect sparsity`, as processes: files that load, run and hold what was asked for."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from support import models
from support.cli import layerwise

from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise.json import save_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.save(models.mlp(width=32), tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    save_json([{"x": rng.standard_normal((2, 32)).astype(np.float32)} for _ in range(8)], tmp_path / "inputs.json")
    return tmp_path


def output(path: Path, size: int = 32) -> np.ndarray:
    feed = {"x": np.linspace(-1, 1, 2 * size, dtype=np.float32).reshape(2, size)}
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
        return np.asarray(runner.infer(feed).outputs["y"])


def weight_types(path: Path) -> dict[str, int]:
    return {tensor.name: tensor.data_type for tensor in onnx.load(path, load_external_data=False).graph.initializer}


def test_fp16_with_nodes_kept(folder: Path) -> None:
    done = layerwise("convert", "m.onnx", "--fp-to-fp16", "--keep-fp32", "/fc1/*", "-o", "h.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "computes FP16 nodes in FP32" in done.stdout and "6 nodes are float16, 3 are kept" in done.stdout
    kinds = weight_types(folder / "h.onnx")
    assert kinds["w0"] == kinds["b2"] == TensorProto.FLOAT16 and kinds["w1"] == kinds["b1"] == TensorProto.FLOAT
    np.testing.assert_allclose(output(folder / "h.onnx"), output(folder / "m.onnx"), atol=2e-2)


def test_bfloat16_by_operator_as_json(folder: Path) -> None:
    done = layerwise("convert", "m.onnx", "--fp-to-bf16", "--keep-fp32-types", "MatMul", "-o", "b.onnx", "--json",
                     cwd=folder)  # fmt: skip
    result = json.loads(done.stdout)["result"]
    assert (result["low"], result["kept"], result["other"]) == (6, 3, 0)
    assert weight_types(folder / "b.onnx")["b0"] == TensorProto.BFLOAT16


def test_int8_from_saved_inputs_with_a_cache(folder: Path) -> None:
    line = ("convert", "m.onnx", "--int8", "--load-inputs", "inputs.json", "--calibration-cache", "c.json")
    done = layerwise(*line, "--keep-fp32", "/fc2/MatMul", "-o", "q.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    model = onnx.load(folder / "q.onnx")
    makers = {name: node for node in model.graph.node for name in node.output}
    reads = {
        node.name: [makers[name].op_type for name in node.input if name in makers]
        for node in model.graph.node
        if node.op_type == "MatMul"
    }
    assert reads["/fc0/MatMul"] == ["DequantizeLinear", "DequantizeLinear"]
    assert makers.get("w2") is None and "DequantizeLinear" not in reads["/fc2/MatMul"][1:]
    assert {t.data_type for t in model.graph.initializer if t.name.startswith("w0_quantized")} == {TensorProto.INT8}
    want = output(folder / "m.onnx")
    assert np.abs(output(folder / "q.onnx") - want).max() < 0.1 * np.abs(want).max()
    assert json.loads((folder / "c.json").read_bytes())
    again = layerwise(*line, "--keep-fp32", "/fc2/MatMul", "-o", "q2.onnx", cwd=folder)
    assert again.returncode == 0, again.stderr
    np.testing.assert_array_equal(output(folder / "q2.onnx"), output(folder / "q.onnx"))


def test_int8_from_a_script_and_from_random_data(folder: Path) -> None:
    (folder / "loader.py").write_text(
        "import numpy as np\ndef load_data():\n    yield {'x': np.ones((1, 32), np.float32)}\n"
    )
    script = layerwise("convert", "m.onnx", "--int8", "--data-loader-script", "loader.py", "--asymmetric",
                       "--calib-base-cls", "IInt8LegacyCalibrator", "--quantile", "0.999", "-o", "s.onnx",
                       "--quantizer", "onnxruntime", cwd=folder)  # fmt: skip
    assert script.returncode == 0, script.stderr
    assert TensorProto.UINT8 in weight_types(folder / "s.onnx").values()
    random = layerwise("convert", "m.onnx", "--int8", "-o", "r.onnx", "--quantize-types", "MatMul", cwd=folder)
    assert random.returncode == 0 and "inputs are made up" in random.stdout + random.stderr
    broken = layerwise("convert", "m.onnx", "--int8", "--load-inputs", "m.onnx", "-o", "x.onnx", cwd=folder)
    assert broken.returncode in (1, 2) and not (folder / "x.onnx").exists()
    twice = layerwise("convert", "s.onnx", "--int8", "-o", "x.onnx", cwd=folder)
    assert twice.returncode == 2 and "quantised already" in twice.stderr


def test_weights_leave_and_come_back(folder: Path) -> None:
    saved = layerwise("convert", "m.onnx", "-o", "w.npz", "--weights", "w*", cwd=folder)
    assert saved.returncode == 0, saved.stderr
    with np.load(folder / "w.npz", allow_pickle=False) as archive:
        np.savez(folder / "zero.npz", **{name: archive[name] * 0 for name in archive})
    done = layerwise("convert", "m.onnx", "--load-weights", "zero.npz", "-o", "z.onnx", "--save-external-data",
                     "z.data", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    last = onnx.numpy_helper.to_array(next(t for t in onnx.load(folder / "m.onnx").graph.initializer if t.name == "b2"))
    np.testing.assert_allclose(output(folder / "z.onnx"), np.maximum(np.tile(last, (2, 1)), 0), rtol=1e-6)
    assert (folder / "z.data").stat().st_size >= 3 * 4 * 32 * 32


def test_opset_and_debug_outputs(folder: Path) -> None:
    done = layerwise("convert", "m.onnx", "--opset", "13", "--mark-type", "Relu", "-o", "o.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    model = onnx.load(folder / "o.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [entry.version for entry in model.opset_import] == [13]
    assert [value.name for value in model.graph.output] == ["h0", "h1", "y"]
    np.testing.assert_allclose(output(folder / "o.onnx"), output(folder / "m.onnx"), rtol=1e-6)


def test_what_functions_compute_is_converted_too(folder: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 17, "mine" : 1]>
        g (float[2,32] x) => (float[2,32] y) { [call] h = mine.Twice(x)  [last] y = Exp(h) }
        <domain: "mine", opset_import: ["" : 17]> Twice (a) => (b) { c = Tanh(a)  b = Add(c, c) }"""
    )
    models.save(model, folder / "f.onnx")
    done = layerwise("convert", "f.onnx", "--fp-to-fp16", "-o", "h.onnx", "--keep-fp32-types", "Tanh", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 nodes are float16, 1 are kept" in done.stdout
    np.testing.assert_allclose(output(folder / "h.onnx"), output(folder / "f.onnx"), rtol=5e-3)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("-o", "m.onnx"), 2, "say --overwrite"),
        ((), 2, "-o/--output is missing"),
        (("-o", "out.txt"), 2, "--convert-to onnx"),
        (("-o", "out.engine", "--fp16"), 1, "pip install 'layerwise[trt]'"),
        (("-o", "out.onnx", "--convert-to", "onnx-like-trt-network"), 1, "pip install 'layerwise[trt]'"),
        (("-o", "m.onnx", "--convert-to", "onnx-like-trt-network"), 2, "say --overwrite"),
        (("-o", "out.onnx", "--fp16"), 2, "say --fp-to-fp16"),
        (("-o", "out.onnx", "--int8", "--fp-to-fp16"), 2, "leave out --fp-to-fp16"),
        (("-o", "out.onnx", "--keep-fp32", "a"), 2, "goes with --fp-to-fp16"),
        (("-o", "out.onnx", "--fp-to-fp16", "--keep-fp32", "nothing"), 2, "no node 'nothing'"),
        (("-o", "out.onnx", "--load-weights", "x.npz"), 1, "No such file"),
        (("-o", "out.onnx", "--opset", "new"), 2, "--opset new"),
        (("-o", "out.onnx", "--int8", "--quantize-types", "Nonesuch"), 2, "does not quantise 'Nonesuch'"),
        (("-o", "out.onnx", "--int8", "--quantile", "0.5"), 2, "IInt8LegacyCalibrator"),
        (("-o", "there.onnx/out.onnx"), 1, "cannot be written"),
    ],
)
def test_what_cannot_be_is_told(folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    (folder / "there.onnx").write_text("")
    done = layerwise("convert", "m.onnx", *words, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "out.onnx").exists() and (folder / "there.onnx").read_text() == ""


def test_overwriting_is_said(folder: Path) -> None:
    (folder / "there.onnx").write_text("")
    done = layerwise("convert", "m.onnx", "-o", "there.onnx", "--overwrite", cwd=folder)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(output(folder / "there.onnx"), output(folder / "m.onnx"))


def test_sparsity_of_dense_and_pruned_weights(folder: Path) -> None:
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.model.structure import Structure
    from layerwise._tool.surgery.saving.model import save
    from layerwise._tool.surgery.weights.sparsity import prune_2_4

    with ModelFile(folder / "m.onnx") as file:
        save(prune_2_4(Structure.open(file), {"w0", "w2"}), folder / "p.onnx")
    done = layerwise("inspect", "sparsity", "p.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "[I] Found: 3 weight tensor(s) eligible for pruning." in done.stdout
    assert "[I] Found sparse tensor: w0" in done.stdout and "[W] Found non-sparse tensor: w1" in done.stdout
    rows = json.loads(layerwise("inspect", "sparsity", "p.onnx", "--json", cwd=folder).stdout)["weights"]
    assert {row["name"]: row["sparse"] for row in rows} == {"w0": True, "w1": False, "w2": True}


def test_int8_leaves_nodes_out_and_says_what_it_costs(folder: Path) -> None:
    done = layerwise("convert", "m.onnx", "--int8", "--load-inputs", "inputs.json", "--calibration", "mse",
                     "--keep-fp32", "/fc2/*", "-o", "q8.onnx", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "q8.onnx is written. With 2 nodes in int8 and " in done.stdout and "are off by 0.0" in done.stdout
    model = onnx.load(folder / "q8.onnx")
    made = {name: node.op_type for node in model.graph.node for name in node.output}
    reads = {
        node.name: [made.get(name) for name in node.input] for node in model.graph.node if node.op_type == "MatMul"
    }
    assert reads["/fc0/MatMul"] == ["DequantizeLinear"] * 2 and "DequantizeLinear" not in reads["/fc2/MatMul"]
    none = layerwise("convert", "m.onnx", "--int8", "--calibration", "mse", "--opset", "18", "-o", "n.onnx", cwd=folder)
    assert none.returncode == 2 and "has none" in none.stderr


def test_int4_and_fp8_end_with_what_they_cost(folder: Path) -> None:
    done = layerwise("convert", "m.onnx", "--int4", "--load-inputs", "inputs.json", "--keep-fp32", "/fc2/MatMul",
                     "-o", "q4.onnx", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "q4.onnx is written. With 2 nodes in int4 and 1 kept in FP32 the outputs are off by 0.1" in done.stdout
    assert TensorProto.INT4 in weight_types(folder / "q4.onnx").values()
    both = layerwise("convert", "m.onnx", "--int4", "--fp8", "-o", "q.onnx", cwd=folder)
    assert both.returncode == 2 and "one conversion at a time" in both.stderr
