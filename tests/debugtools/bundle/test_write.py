"""A bundle shows its fault on its own: with numpy and onnxruntime, without anything of ours."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.models import mlp

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.onnxrt.runner import open_onnxrt
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.bundle.write import Fault, try_bundle, why_not, write_bundle
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule

RUNNER = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")


def fault_of(model: onnx.ModelProto, folder: Path, feed: dict[str, np.ndarray], moved: float = 0.0) -> Fault:
    """A fault whose golden outputs are the model's own, moved by `moved`."""
    path = folder / "m.onnx"
    onnx.save(model, path)
    with open_onnxrt(RUNNER, Loadable(path=path), name="r") as runner:
        outputs = runner.infer(feed).outputs
    golden = {name: (array.astype(np.float64) + moved).astype(array.dtype) for name, array in outputs.items()}
    return Fault(path, RUNNER, feed, golden, {name: Rule() for name in golden}, "a fault", ["node 1"])


def alone(folder: Path, elsewhere: Path) -> subprocess.CompletedProcess[str]:
    """Run the script from a copy of the bundle, with no environment and no path to our packages."""
    shutil.copytree(folder, elsewhere)
    command = [sys.executable, "-I", "repro.py"]
    return subprocess.run(
        command, cwd=elsewhere, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("moved", "code", "said"), [(0.5, 1, "1 of 1 outputs are wrong"), (0.0, 0, "does not show")])
def test_the_script_fails_only_where_the_fault_is(tmp_path: Path, moved: float, code: int, said: str) -> None:
    model = mlp()
    feed = {value.name: np.ones([d.dim_value or 1 for d in value.type.tensor_type.shape.dim], np.float32)
            for value in model.graph.input}  # fmt: skip
    folder = write_bundle(fault_of(model, tmp_path, feed, moved), tmp_path / "bundle")
    done = alone(folder, tmp_path / "elsewhere")
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout
    assert try_bundle(folder) == (code, done.stdout)
    assert "node 1" in (folder / "README.md").read_text()
    assert json.loads((folder / "repro.json").read_text())["versions"]["numpy"] == np.__version__


def test_of_two_onnxruntimes_the_one_that_is_imported_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = tmp_path / "beside"
    (beside / "onnxruntime").mkdir(parents=True)
    (beside / "onnxruntime" / "__init__.py").write_text("")
    info = beside / "onnxruntime-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime\nVersion: 0.1\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(beside)])
    model = mlp()
    feed = {value.name: np.ones([d.dim_value or 1 for d in value.type.tensor_type.shape.dim], np.float32)
            for value in model.graph.input}  # fmt: skip
    folder = write_bundle(fault_of(model, tmp_path, feed), tmp_path / "bundle")
    assert json.loads((folder / "repro.json").read_text())["versions"]["onnxruntime"] == onnxruntime.__version__


def one_node(op: str, types: tuple[int, int], **attributes: object) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, dtype, [4]) for name, dtype in zip("xy", types, strict=True)]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], "n", **attributes)], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    half = one_node("Cast", (TensorProto.BFLOAT16, TensorProto.BFLOAT16), to=TensorProto.BFLOAT16)
    feed = {"x": np.array([1, 2, 3, 4], ml_dtypes.bfloat16)}
    folder = write_bundle(fault_of(half, tmp_path, feed), tmp_path / "same")
    assert alone(folder, tmp_path / "a").returncode == 0
    folder = write_bundle(fault_of(half, tmp_path, feed, moved=1.0), tmp_path / "moved")
    done = alone(folder, tmp_path / "b")
    assert (done.returncode, "max abs 1," in done.stdout) == (1, True)


def test_a_model_that_does_not_run_is_the_fault(tmp_path: Path) -> None:
    onnx.save(one_node("NoSuchOperator", (TensorProto.FLOAT, TensorProto.FLOAT)), tmp_path / "m.onnx")
    fault = Fault(tmp_path / "m.onnx", RUNNER, {"x": np.ones(4, np.float32)}, {}, {}, "does not load")
    done = alone(write_bundle(fault, tmp_path / "bundle"), tmp_path / "a")
    assert done.returncode == 1
    assert "NoSuchOperator" in done.stdout


def test_external_weights_come_along(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    model = one_node("Add", (TensorProto.FLOAT, TensorProto.FLOAT))
    model.graph.node[0].input.append("w")
    model.graph.initializer.append(numpy_helper.from_array(np.full(4, 7, np.float32), "w"))
    onnx.save(model, tmp_path / "src" / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    feed, golden = {"x": np.zeros(4, np.float32)}, {"y": np.full(4, 7, np.float32)}
    fault = Fault(tmp_path / "src" / "m.onnx", RUNNER, feed, golden, {"y": Rule()}, "t")
    assert alone(write_bundle(fault, tmp_path / "bundle"), tmp_path / "a").returncode == 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "notes.txt").write_text("mine")
    fault = Fault(tmp_path / "m.onnx", RUNNER, {}, {}, {}, "t")
    with pytest.raises(UsageError, match="exists already"):
        write_bundle(fault, tmp_path / "bundle")


def test_a_model_that_ran_where_the_fault_was_found_and_not_here_shows_nothing(tmp_path: Path) -> None:
    model = one_node("Relu", (TensorProto.FLOAT, TensorProto.FLOAT))
    folder = write_bundle(fault_of(model, tmp_path, {"x": np.ones(4, np.float32)}, 1.0), tmp_path / "bundle")
    onnx.save(one_node("NoSuchOperator", (TensorProto.FLOAT, TensorProto.FLOAT)), folder / "model.onnx")
    code, said = try_bundle(folder)
    assert code == 2 and why_not(code, said).startswith("the model does not run: ")
    (folder / "repro.py").write_text("raise SystemError('broken')")
    code, said = try_bundle(folder)
    assert (code, why_not(code, said)) == (2, "SystemError: broken")
    assert why_not(-9, "") == "it was ended by SIGKILL, which the system does where memory runs out"


def test_packages_are_found_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime may be in a folder on PYTHONPATH, which an isolated interpreter ignores."""
    place = tmp_path / "elsewhere" / "onnxruntime"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("raise ImportError('the one in another folder')")
    monkeypatch.syspath_prepend(str(place.parent))
    monkeypatch.delitem(sys.modules, "onnxruntime")
    model = one_node("Relu", (TensorProto.FLOAT, TensorProto.FLOAT))
    onnx.save(model, tmp_path / "m.onnx")
    fault = Fault(tmp_path / "m.onnx", RUNNER, {"x": np.ones(4, np.float32)}, {}, {}, "none")
    code, said = try_bundle(write_bundle(fault, tmp_path / "bundle"))
    assert (code, why_not(code, said)) == (2, "the one in another folder (pip install onnxruntime)")
