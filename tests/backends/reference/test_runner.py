"""The ONNX reference evaluator as a runner, and evaluation node by node."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from support import models

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.runner import Loadable, Runner, flat_values, open_runner
from layerwise._tool.backends.specs import RunnerSpec

REFERENCE = RunnerSpec(kind="reference")


def opened(model: onnx.ModelProto) -> Runner:
    return open_runner(REFERENCE, Loadable(data=model.SerializeToString()))


F4 = np.array([1, -2, 3, 4], np.float32)
FEEDS = {
    "mlp": {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 16)},
    "conv_net": {"image": np.linspace(-1, 1, 768, dtype=np.float32).reshape(1, 3, 16, 16)},
    "if_model": {"cond": np.array(False), "x": F4},
    "loop_model": {"trips": np.array(3), "x": F4[:2]},
    "scan_model": {"state": F4[:2], "xs": np.ones((3, 2), np.float32)},
    "bf16_model": {"x": np.ones((2, 3), ml_dtypes.bfloat16)},
    "string_model": {"x": np.array(["a", "b"], object)},
    "sequence_model": {"x": F4[:2]},
    "dynamic_model": {"x": F4[None]},
    "function_model": {"x": F4[:3]},
}


@pytest.mark.parametrize("name", FEEDS)
def test_the_reference_agrees_with_onnxruntime(name: str) -> None:
    model = getattr(models, name)()
    found = []
    for kind in ("onnxrt", "reference"):
        with open_runner(RunnerSpec(kind=kind), Loadable(data=model.SerializeToString())) as runner:
            found.append(runner.infer(FEEDS[name]).outputs)
    assert list(found[0]) == list(found[1])
    for theirs, ours in zip(found[0].values(), found[1].values(), strict=True):
        assert theirs.dtype == ours.dtype
        if theirs.dtype == object:
            assert theirs.tolist() == ours.tolist()
        else:
            np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-4, atol=1e-5)


def test_any_tensor_can_be_requested_and_only_its_inputs_are_evaluated() -> None:
    model = models.from_text(
        "g (float[2] x) => (float[2] y) { [a] h = Add(x, x)\n [boom] b = Reshape(x, s)\n [c] y = Sub(h, b) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([7]), "s"))
    with opened(model) as runner:
        outputs = runner.infer({"x": F4[:2]}, ["h", "x", "s"]).outputs
        assert [array.tolist() for array in outputs.values()] == [[2, -4], [1, -2], [7]]
        with pytest.raises(LayerwiseError, match=r"node 'boom' \(Reshape\) failed"):
            runner.infer({"x": F4[:2]})
        with pytest.raises(UsageError, match="does not give output 'nope'"):
            runner.infer({"x": F4[:2]}, ["nope"])


def test_fp16_overflows_where_onnxruntime_on_the_cpu_hides_it() -> None:
    model = models.from_text(
        "g (float16[2] x) => (float16[2] y) { s = Mul(x, x)\n y = Sqrt(s) }",
    )
    x = np.array([300, 2], np.float16)
    with opened(model) as runner:
        assert runner.infer({"x": x}).outputs["y"].tolist() == [np.inf, 2]


def test_bfloat16_is_computed_as_bfloat16() -> None:
    model = models.from_text("g (bfloat16[1] x, bfloat16[1] y) => (bfloat16[1] z) { z = Add(x, y) }")
    with opened(model) as runner:
        z = runner.infer({"x": np.array([256], ml_dtypes.bfloat16), "y": np.array([1], ml_dtypes.bfloat16)}).outputs[
            "z"
        ]
    assert z.dtype == ml_dtypes.bfloat16
    assert float(z[0]) == 256


def test_tensors_are_the_callers_own() -> None:
    model = models.from_text("g (float[2] x) => (float[2] y, float[2] w) <float[2] w = {1, 2}> { y = Identity(x) }")
    x = np.ones(2, np.float32)
    with opened(model) as runner:
        for _ in range(2):
            outputs = runner.infer({"x": x}).outputs
            assert [array.tolist() for array in outputs.values()] == [[1, 1], [1, 2]]
            for array in outputs.values():
                array[:] = 9
    assert x.tolist() == [1, 1]


def test_captured_tensors_live_until_the_body_has_run() -> None:
    model = models.from_text(
        """g (bool c, float[2] x) => (float[2] y) {
            h = Add(x, x)
            u = Mul(h, x)
            y = If (c) < then_branch = t () => (float[2] a) {
                a = If (c) < then_branch = tt () => (float[2] d) { d = Add(h, u) },
                             else_branch = te () => (float[2] e) { e = Identity(u) } >
            }, else_branch = f () => (float[2] b) { b = Identity(h) } >
        }"""
    )
    with opened(model) as runner:
        assert runner.infer({"c": np.array(True), "x": F4[:2]}).outputs["y"].tolist() == [4, 4]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.int4, np.int64])
def test_external_weights_of_any_type_are_read(dtype: type, tmp_path: Path) -> None:
    values = np.arange(-8, 7).astype(dtype)
    name = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()
    model = models.from_text(f"g (float[1] x) => ({name}[15] w, float[1] y) {{ y = Neg(x) }}")
    model.graph.initializer.append(numpy_helper.from_array(values, "w"))
    path = models.with_external_weights(model, tmp_path / "m.onnx")
    assert ReferenceEvaluator(onnx.load(path)).run(None, {"x": F4[:1]})[0].tolist() == values.tolist()
    with open_runner(REFERENCE, Loadable(path=path)) as runner:
        w = runner.infer({"x": F4[:1]}).outputs["w"]
    assert w.dtype == np.dtype(dtype)
    assert w.tolist() == values.tolist()


def test_weights_in_the_model_file_are_read(tmp_path: Path) -> None:
    model = ModelFile(models.save(models.conv_net(), tmp_path / "net.onnx"))
    with opened(models.conv_net()) as runner:
        want = runner.infer(FEEDS["conv_net"]).outputs["scores"]
    apart = Loadable(data=model.structure_bytes(), folder=model.folder)
    with open_runner(REFERENCE, apart) as runner:
        np.testing.assert_array_equal(runner.infer(FEEDS["conv_net"]).outputs["scores"], want)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"location": "../weights.bin"}, "outside the model's folder"),
        ({"location": "/etc/passwd"}, "outside the model's folder"),
        ({"location": "none.bin"}, "is missing"),
        ({"offset": "999999"}, "ends before"),
    ],
)
def test_missing_external_weights_are_an_error(change: dict[str, str], reason: str, tmp_path: Path) -> None:
    path = models.with_external_weights(models.mlp(), tmp_path / "m.onnx")
    (tmp_path / "weights.bin").rename(tmp_path / "keep.bin")
    (tmp_path / "keep.bin").rename(tmp_path / "weights.bin")
    proto = onnx.load(path, load_external_data=False)
    for entry in proto.graph.initializer[0].external_data:
        entry.value = change.get(entry.key, entry.value)
    with pytest.raises(BadFile, match=reason):
        open_runner(REFERENCE, Loadable(data=proto.SerializeToString(), folder=tmp_path))


def test_files_that_are_not_models_are_rejected() -> None:
    for data in (b"no model at all", b""):
        with pytest.raises(BadFile, match="ONNX model"):
            open_runner(REFERENCE, Loadable(data=data))


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(LayerwiseError, match="Foo"):
        opened(models.from_text("g (float[2] x) => (float[2] y) { y = Foo(x) }"))


@pytest.mark.parametrize("kind", ["onnxrt", "reference"])
def test_onnx_node_tests_pass(kind: str) -> None:
    right, wrong, refused = [], [], []
    cases = list(models.node_cases().values())[::5]
    for case in cases:
        try:
            with open_runner(RunnerSpec(kind=kind), Loadable(data=case.model.SerializeToString())) as runner:
                outputs = runner.infer(case.feed).outputs
        except LayerwiseError as error:  # an operator that the backend does not have; nothing else may be raised
            refused.append((case.name, str(error)))
            continue
        (right if _as_expected(case, outputs) else wrong).append(case.name)
    random = {name for name in wrong if "bernoulli" in name or "dropout" in name}
    assert len(wrong) - len(random) <= 4, wrong  # operators on which the backend itself differs from ONNX
    newer = [name for name, message in refused if "Unsupported model IR version" in message]  # onnx's is newer
    assert len(right) > (0.85 if kind == "onnxrt" else 0.955) * (len(cases) - len(newer))
    assert all("\n" not in message for _, message in refused)


def _as_expected(case: models.NodeCase, outputs: Mapping[str, np.ndarray]) -> bool:
    for name, value in _flat(case.outputs).items():
        got = outputs[name]
        if got.dtype != value.dtype or got.shape != value.shape:
            return False
        if value.dtype == object or value.dtype.kind == "c":
            same = bool((got == value).all())
        else:
            wide = got.astype(np.float64), value.astype(np.float64)
            same = np.allclose(*wide, rtol=max(case.rtol, 1e-2), atol=max(case.atol, 1e-2), equal_nan=True)
        if not same:
            return False
    return True


def _flat(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    flat: dict[str, np.ndarray] = {}
    for name, value in values.items():
        flat.update(flat_values(name, value))
    return {name: array.astype(object) if array.dtype.kind in "US" else array for name, array in flat.items()}


def test_an_external_weight_whose_dimensions_are_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"")
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[-1, 0])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    with pytest.raises(BadFile, match="its shape"):
        tensor_array(tensor, tmp_path)


def test_one_element_of_each_row_is_gathered() -> None:
    """ONNX's own operator fails there; exports of BERT ask for it."""
    text = "m (float[1, 6] x, int64[1, 1] i) => (float[1, 1] y) { y = GatherElements <axis = 1> (x, i) }"
    with opened(models.from_text(text)) as runner:
        found = runner.infer({"x": np.arange(6, dtype=np.float32).reshape(1, 6), "i": np.array([[4]])}).outputs
    assert found["y"].tolist() == [[4.0]]
