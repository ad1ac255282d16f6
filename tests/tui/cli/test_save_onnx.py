"""`run --save-onnx`: the model as it is run, with its weights inside or beside it."""

import json
import os
from pathlib import Path

import onnx
import pytest
from support.cli import layerwise
from support.models import mlp


@pytest.mark.parametrize(
    ("options", "outputs", "files"),
    [
        ((), ["y"], {"s.onnx"}),
        (("--onnx-outputs", "a0", "m1"), ["a0", "m1"], {"s.onnx"}),
        (("--mark", "a0"), ["a0", "y"], {"s.onnx"}),
        (("--save-external-data",), ["y"], {"s.onnx", "s.onnx.data"}),
        (("--save-external-data", "w.bin", "--external-data-size-threshold", "0"), ["y"], {"s.onnx", "w.bin"}),
    ],
)
def test_the_saved_model_is_the_one_that_ran(
    tmp_path: Path, options: tuple[str, ...], outputs: list[str], files: set[str]
) -> None:
    onnx.save(mlp(width=32), tmp_path / "m.onnx")
    done = layerwise("run", "m.onnx", "--onnxrt", "--save-onnx", "out/s.onnx", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == files
    usual = (tmp_path / "m.onnx").stat().st_mode
    assert {path.stat().st_mode for path in (tmp_path / "out").iterdir()} == {usual}
    saved = onnx.load(tmp_path / "out" / "s.onnx")
    assert [value.name for value in saved.graph.output] == outputs
    onnx.checker.check_model(saved)
    same = layerwise("run", "m.onnx", "--onnxrt", "--reference-model", "out/s.onnx", "--onnx-outputs", outputs[-1],
                     cwd=tmp_path)  # fmt: skip
    assert same.returncode == 0, same.stdout


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    (tmp_path / "file").write_text("")
    done = layerwise("run", "m.onnx", "--onnxrt", "--save-onnx", "file/s.onnx", cwd=tmp_path)
    assert done.returncode == 1
    assert "--save-onnx file/s.onnx" in done.stderr


def test_a_model_is_run_shown_and_written_in_fp16(tmp_path: Path) -> None:
    onnx.save(mlp(width=32), tmp_path / "m.onnx")
    line = ("run", "m.onnx", "--fp-to-fp16", "--onnxrt")
    done = layerwise(*line, "--reference-model", "m.onnx", "--save-onnx", "s.onnx", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr  # half of the digits are gone
    saved = onnx.load(tmp_path / "s.onnx")
    assert {tensor.data_type for tensor in saved.graph.initializer} == {onnx.TensorProto.FLOAT16}
    assert [value.type.tensor_type.elem_type for value in saved.graph.output] == [onnx.TensorProto.FLOAT]
    assert 1e-5 < json.loads(done.stdout)["result"]["worst"]["max_abs"] < 1e-2
    jobs = Path(os.environ["LAYERWISE_HOME"]) / "jobs"
    assert not list(jobs.glob("*/half"))
    done = layerwise(*line, "--gen-script", "-", cwd=tmp_path)
    assert done.returncode == 0 and "ConvertToFp16(OnnxFromPath('m.onnx'))" in done.stdout
    done = layerwise("inspect", "model", "m.onnx", "--fp-to-fp16", "--show", "layers", cwd=tmp_path)
    assert done.returncode == 0 and "Loading model: m.onnx" in done.stdout and "dtype=float16" in done.stdout
    done = layerwise("check", "lint", "m.onnx", "--fp-to-fp16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = ("surgeon", "sanitize", "m.onnx", "--fp-to-fp16", "--fold-constants", "-o", "folded.onnx")
    assert layerwise(*words, cwd=tmp_path).returncode == 0
    folded = onnx.load(tmp_path / "folded.onnx")
    assert {tensor.data_type for tensor in folded.graph.initializer} == {onnx.TensorProto.FLOAT16}
