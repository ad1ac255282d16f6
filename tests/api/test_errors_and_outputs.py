"""Errors, outputs and loggers as scripts of Polygraphy's meet them: each script gives the same with both packages."""

from pathlib import Path

import onnx
import pytest
from support import models
from support.both_packages import PACKAGES, outcome

SCRIPTS = {
    "a file that is not there is what Python raises for one": """
def raised(load):
    try:
        load("nowhere.file")
    except FileNotFoundError:
        return True
[raised(load) for load in (load_json, onnx_from_path, bytes_from_path, RunResults.load)]
""",
    "a damaged model is what protobuf raises for one": """
from google.protobuf.message import DecodeError
damaged = path + ".damaged"
open(damaged, "wb").write(b"no model")
def raised(load, given):
    try:
        load(given)
    except DecodeError:
        return True
[raised(onnx_from_path, damaged), raised(onnx_from_bytes, b"no model")]
""",
    "a session is made of bytes or a path": """
def raised(given):
    try:
        session_from_onnx(given)
    except TypeError:
        return True
[raised(given) for given in (onnx_from_path(path), 3)]
""",
    "a statistic that is none is told at once": """
def raised(stat):
    it = IterationResult({"y": np.ones(2)})
    try:
        SimpleCompareFunc(check_error_stat=stat)(it, it)
    except PolygraphyException as error:
        return str(error)[:42]
[raised(stat) for stat in ("wrong", {"y": "wrong"})]
""",
    "outputs are in an ordered dictionary": """
with OnnxrtRunner(SessionFromOnnx(path)) as runner:
    made = runner.infer({"x": np.ones((1, 16), np.float32)})
[made.popitem(last=False)[0], type(made).__name__]
""",
    "shape inference goes as far as it can": """
[len(infer_shapes(onnx_from_path(wrong), error_ok=ok).graph.value_info) for ok in (True, False)]
""",
    "levels of modules hold where a text is run": """
G_LOGGER.module_severity = {"": 60, "backend/onnx": 60}
G_LOGGER.info("not shown")
G_LOGGER.module_severity.get("backend/onnx/loader.py")
""",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_gives_the_same(script: str, tmp_path: Path) -> None:
    path, wrong = tmp_path / "m.onnx", tmp_path / "wrong.onnx"
    onnx.save(models.mlp(), path)
    onnx.save(
        models.from_text("g (float[1,8] x, float[3,3] w) => (float[1,3] y) { r = Relu(x) y = MatMul(r, w) }"), wrong
    )
    theirs, ours = (outcome(package, script, path=str(path), wrong=str(wrong)) for package in PACKAGES)
    assert theirs == ours
    assert not isinstance(ours, tuple), ours
