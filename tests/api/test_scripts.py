"""Scripts written for Polygraphy run on our package by changing one word, and come to the same."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.cli import run_script
from support.models import mlp

SCRIPTS = {
    "compare": """
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from PKG.comparator import Comparator, CompareFunc, DataLoader
from PKG.backend.onnx import BytesFromOnnx, ModifyOutputs, OnnxFromPath
from PKG import constants

marked = BytesFromOnnx(ModifyOutputs(OnnxFromPath("m.onnx"), outputs=constants.MARK_ALL, exclude_outputs=["m0"]))
runners = [OnnxrtRunner(SessionFromOnnx(marked), name="marked"), OnnxrtRunner(SessionFromOnnx("m.onnx"), name="plain")]
results = Comparator.run(runners, data_loader=DataLoader(seed=5, iterations=2, val_range=(-1, 1)))
accuracy = Comparator.compare_accuracy(results, compare_func=CompareFunc.simple(atol={"y": 1e-3}))
out = {"passed": bool(accuracy), "names": list(results[0][1][0]), "stats": accuracy[0].stats()}
out["values"] = [[float(v.sum()) for v in it.values()] for _, its in results.items() for it in its]
""",
    "without_comparator": """
import numpy as np
from PKG.backend.common import BytesFromPath
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx

data = [{"x": np.full((n, 16), 0.1, np.float32)} for n in (1, 3)]
with OnnxrtRunner(SessionFromOnnx(BytesFromPath("m.onnx"))) as runner:
    meta = runner.get_input_metadata()
    out = {"inputs": list(meta), "shapes": [runner.infer(feed)["y"].shape for feed in data]}
    out["timed"] = runner.last_inference_time() > 0
runner.activate()
out["active"] = runner.is_active
runner.deactivate()
""",
    "functional": """
from PKG.backend.onnx import bytes_from_onnx, modify_outputs, onnx_from_path, save_onnx
from PKG.backend.onnxrt import OnnxrtRunner, session_from_onnx
from PKG.logger import G_LOGGER

with G_LOGGER.verbosity(G_LOGGER.ERROR):
    model = modify_outputs(onnx_from_path("m.onnx"), outputs=["a0", "y"])
    save_onnx(model, "marked.onnx")
    session = session_from_onnx(bytes_from_onnx(model))
    with OnnxrtRunner(session) as runner:
        import numpy as np
        found = runner.infer({"x": np.ones((2, 16), np.float32)})
out = {"names": list(found), "session": type(session).__name__, "sum": float(found["y"].sum())}
""",
    "fp16": """
import numpy as np
from PKG.backend.onnx import bytes_from_onnx, convert_to_fp16, onnx_from_path
from PKG.backend.onnxrt import OnnxrtRunner, session_from_onnx

model = convert_to_fp16(onnx_from_path("m.onnx"))
with OnnxrtRunner(session_from_onnx(bytes_from_onnx(model))) as runner:
    found = runner.infer({"x": np.ones((2, 16), np.float32)})["y"]
out = {"weights": sorted({t.data_type for t in model.graph.initializer}), "type": str(found.dtype),
       "sum": round(float(found.sum()))}
""",
    "json": """
import numpy as np
from PKG.comparator import RunResults
from PKG.json import from_json, load_json, save_json, to_json

results = RunResults.load("saved.json")
for name, iterations in results.items():
    for iteration in iterations:
        iteration["y"] = iteration["y"] * 2
        iteration["extra"] = np.arange(3)
results.save("edited.json")
again = RunResults.load("edited.json")
save_json([{"x": np.eye(2, dtype=np.float32)}], "inputs.json")
out = {
    "runners": list(again.keys()), "outputs": list(again[0][1][0].keys()), "sum": float(again[0][1][0]["y"].sum()),
    "inputs": load_json("inputs.json")[0]["x"].tolist(), "text": from_json(to_json({"a": np.ones(2)}))["a"].tolist(),
    "named": again["runner"][0].runner_name, "in": "runner" in again,
}
""",
    "extend": """
from PKG import func
from PKG.backend.onnx import OnnxFromPath
from PKG.backend.onnx import BytesFromOnnx
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx

@func.extend(OnnxFromPath("m.onnx"))
def renamed(model):
    model.graph.name = "renamed"

out = {"graph": renamed().graph.name}
with OnnxrtRunner(SessionFromOnnx(BytesFromOnnx(renamed))) as runner:
    out["inputs"] = list(runner.get_input_metadata())
""",
    "metadata": """
import numpy as np
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from PKG.common import TensorMetadata
from PKG.comparator import Comparator, DataLoader, TopKPostprocessFunc, IterationResult

loader = DataLoader(input_metadata=TensorMetadata().add("x", dtype=np.float32, shape=(3, 16)))
results = Comparator.run([OnnxrtRunner(SessionFromOnnx("m.onnx"), name="a")], data_loader=loader)
top = Comparator.postprocess(results, TopKPostprocessFunc(k=3))
out = {"top": top["a"][0]["y"].tolist(), "valid": Comparator.validate(results, check_inf=True)}
""",
    "streaming": """
from PKG.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from PKG.comparator import Comparator, DataLoader, L2CompareFunc, SimpleCompareFunc

def runners():
    return [OnnxrtRunner(SessionFromOnnx("m.onnx"), name=n) for n in "ab"]

stream = Comparator.run(runners(), data_loader=DataLoader(iterations=3), streaming=True, save_outputs_path="s.json")
functions = [SimpleCompareFunc(check_error_stat="mean"), L2CompareFunc(l2_threshold=1e-6)]
accuracy = Comparator.compare_accuracy(stream, compare_func=functions)
accuracy.save("acc.json")
out = {"passed": bool(accuracy), "functions": len(accuracy), "stats": [a.stats() for a in accuracy]}
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from polygraphy.comparator import RunResults

    onnx.save(mlp(), tmp_path / "m.onnx")
    results = RunResults()
    results.add([{"y": np.ones((1, 4), np.float32)}] * 2, runtime=0.5, runner_name="runner")
    results.save(str(tmp_path / "saved.json"))
    return tmp_path


def outcome(script: str, package: str, folder: Path) -> object:
    text = script.replace("PKG", package) + "\nimport json\nprint('OUT ' + json.dumps(out))\n"
    (folder / f"{package}_script.py").write_text(text)
    done = run_script(f"{package}_script.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("OUT ")[2])


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_carries_over(name: str, folder: Path) -> None:
    assert outcome(SCRIPTS[name], "layerwise", folder) == outcome(SCRIPTS[name], "polygraphy", folder)


def test_saved_weights_have_the_usual_mode_and_are_written_anew(folder: Path) -> None:
    from layerwise.backend.onnx import onnx_from_path, save_onnx

    model = onnx_from_path(str(folder / "m.onnx"))
    before = os.umask(0o027)
    try:
        for _ in range(2):
            save_onnx(model, str(folder / "out.onnx"), external_data_path="out.data", size_threshold=0)
        many = {"external_data_path": "", "all_tensors_to_one_file": False}
        save_onnx(model, str(folder / "many.onnx"), size_threshold=0, **many)
    finally:
        os.umask(before)
    weights = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    made = [path for path in folder.iterdir() if path.name not in ("m.onnx", "saved.json")]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o640} and len(made) == 3 + len(weights)
    assert (folder / "out.data").stat().st_size < 4096 * len(weights) + sum(array.nbytes for array in weights)
    for name in ("out.onnx", "many.onnx"):
        saved = [numpy_helper.to_array(tensor) for tensor in onnx.load(folder / name).graph.initializer]
        assert all(np.array_equal(a, b) for a, b in zip(saved, weights, strict=True))
