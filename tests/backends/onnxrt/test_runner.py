"""The onnxruntime runner: types, providers, readable errors, optimised graphs."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support import models
from support.heavy import make_heavy
from support.versions import since

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.onnxrt.runner import optimized_model
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import BRIEF_SPINNING, RunnerSpec
from layerwise._tool.surgery.precision.nodes import convert_precision, emulate_precision


def opened(model: onnx.ModelProto, **options: object) -> Runner:
    return open_runner(RunnerSpec(kind="onnxrt", **options), Loadable(data=model.SerializeToString()))


X2 = np.array([1, 2], np.float32)


def test_a_runner_runs_a_model_and_lists_inputs_and_outputs() -> None:
    with opened(models.mlp(width=4)) as runner:
        result = runner.infer({"x": np.ones((3, 4), np.float32)})
    (info,) = runner.inputs
    assert (info.name, info.dtype, info.shape) == ("x", "float32", ("batch", 4))
    assert list(result.outputs) == runner.outputs == ["y"]
    assert result.outputs["y"].shape == (3, 4)
    assert result.runtime is not None and result.runtime > 0
    assert result.runner_name == runner.name


def test_an_input_of_unknown_rank_takes_any_shape_and_a_number_by_default() -> None:
    model = models.from_text("g (float x, float n) => (float y) { y = Add(x, n) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with opened(model) as runner:
        unknown, number = runner.inputs
        assert unknown.shape == number.shape == ()
        assert unknown.fits((2, 3)) and not number.fits((2, 3))
        assert runner.infer({"x": np.ones((2, 3), np.float32), "n": np.array(1, np.float32)}).outputs["y"].shape == (
            2,
            3,
        )


@pytest.mark.parametrize(
    ("type_text", "dtype"),
    [
        ("bfloat16", ml_dtypes.bfloat16),
        ("float8e4m3fn", ml_dtypes.float8_e4m3fn),
        ("float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
        ("float8e5m2", ml_dtypes.float8_e5m2),
        ("float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
        ("float16", np.float16),
    ],
)
def test_small_floats_pass_through_unchanged(type_text: str, dtype: type) -> None:
    number = onnx.TensorProto.DataType.Value(type_text.upper())
    model = models.from_text(
        f"g ({type_text}[2,3] x) => ({type_text}[2,3] y, float[2,3] wide, {type_text}[2,3] back) "
        f"{{ y = Identity(x)\n wide = Cast<to=1>(x)\n back = Cast<to={number}>(wide) }}"
    )
    x = np.array([[0, 1, -2], [0.5, 16, -0.25]]).astype(dtype)
    with opened(model) as runner:
        outputs = runner.infer({"x": x}).outputs
    for name in ("y", "back"):
        assert outputs[name].dtype == np.dtype(dtype)
        assert outputs[name].tobytes() == x.tobytes()
    assert outputs["wide"].dtype == np.float32
    np.testing.assert_array_equal(outputs["wide"], x.astype(np.float32))


@since("onnxruntime", "1.23", "no Cast from 4 bits")
@pytest.mark.parametrize(
    ("number", "dtype", "values"),
    [
        (22, ml_dtypes.int4, [1, -2, 3, 7, -8]),
        (21, ml_dtypes.uint4, [1, 2, 3, 15, 0]),
    ],
)
def test_four_bit_tensors_of_odd_length_pass_through(number: int, dtype: type, values: list[int]) -> None:
    word = onnx.TensorProto.DataType.Name(number).lower()
    wide = np.array(values, np.float32)
    with opened(models.from_text(f"g (float[5] x) => ({word}[5] y) {{ y = Cast<to={number}>(x) }}")) as runner:
        packed = runner.infer({"x": wide}).outputs["y"]
    assert packed.dtype == np.dtype(dtype)
    assert packed.tolist() == values
    with opened(models.from_text(f"g ({word}[5] x) => (float[5] y) {{ y = Cast<to=1>(x) }}")) as runner:
        np.testing.assert_array_equal(runner.infer({"x": packed}).outputs["y"], wide)


def test_empty_bfloat16_tensors_pass_through() -> None:
    model = models.from_text("g (bfloat16[n] x) => (bfloat16[n] y) { y = Identity(x) }")
    with opened(model) as runner:
        assert runner.infer({"x": np.zeros(0, ml_dtypes.bfloat16)}).outputs["y"].shape == (0,)


def test_strings_and_booleans_pass_through() -> None:
    words = np.array(["a", "bé\n\x1b[31m"], object)
    with opened(models.string_model()) as runner:
        assert runner.infer({"x": words}).outputs["y"].tolist() == words.tolist()
    with opened(models.from_text("g (bool[2] x) => (bool[2] y) { y = Not(x) }")) as runner:
        assert runner.infer({"x": np.array([True, False])}).outputs["y"].tolist() == [False, True]


def test_sequences_are_returned_element_by_element() -> None:
    with opened(models.sequence_model()) as runner:
        outputs = runner.infer({"x": X2}).outputs
    assert list(outputs) == ["y[0]", "y[1]", "z"]
    np.testing.assert_array_equal(outputs["y[1]"], 2 * X2)


def test_an_absent_optional_is_omitted() -> None:
    model = models.from_text("g (optional(float[2]) x) => (optional(float[2]) y) { y = Identity(x) }")
    with opened(model) as runner:
        assert dict(runner.infer({"x": None}).outputs) == {}  # type: ignore[dict-item]
        np.testing.assert_array_equal(runner.infer({"x": X2}).outputs["y"], X2)


def test_outputs_are_the_callers_own() -> None:
    model = models.from_text(
        "g (float[2] x) => (float[2] x, float[2] w, float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    for dtype in (np.float32, ml_dtypes.bfloat16):
        with opened(model if dtype is np.float32 else _as_bfloat16()) as runner:
            x = np.ones(2, dtype)
            first = runner.infer({"x": x}).outputs
            for array in first.values():
                array[:] = 7
            second = runner.infer({"x": x}).outputs
        assert {name: array.tolist() for name, array in second.items()} == {"x": [1, 1], "w": [1, 2], "y": [2, 3]}


def _as_bfloat16() -> onnx.ModelProto:
    new = models.from_text(
        """g (bfloat16[2] x) => (bfloat16[2] x, bfloat16[2] w, bfloat16[2] y) <float[2] f = {1, 2}> {
            wide = Cast<to=1>(x)
            sum = Add(wide, f)
            y = Cast<to=16>(sum)
        }"""
    )
    new.graph.initializer.append(numpy_helper.from_array(np.array([1, 2], ml_dtypes.bfloat16), "w"))
    return new


def test_a_subset_of_outputs_can_be_requested() -> None:
    with opened(models.loop_model()) as runner:
        outputs = runner.infer({"trips": np.array(2), "x": X2}, ["every"]).outputs
    assert list(outputs) == ["every"]


def test_an_initializer_that_is_an_input_may_be_fed() -> None:
    model = models.from_text("g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(X2, "w"))
    with opened(model) as runner:
        assert [info.name for info in runner.inputs] == ["x"]
        assert runner.infer({"x": X2}).outputs["y"].tolist() == [2, 4]
        assert runner.infer({"x": X2, "w": 0 * X2}).outputs["y"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({}, "the feed lacks input 'x'"),
        ({"x": X2, "z": X2}, "the model has no input 'z'"),
        ({"x": X2.astype(np.float64)}, "input 'x' is float32, the feed has float64"),
    ],
)
def test_a_feed_that_does_not_match_is_rejected(feed: dict[str, np.ndarray], message: str) -> None:
    with opened(models.from_text("g (float[2] x) => (float[2] y) { y = Neg(x) }")) as runner:
        with pytest.raises(UsageError, match=message):
            runner.infer(feed)
        with pytest.raises(UsageError, match="does not give output 'nope'"):
            runner.infer({"x": X2}, ["nope"])


def test_a_failing_node_is_named_on_one_line() -> None:
    model = models.from_text("g (float[a] x, int64[b] s) => (float[c] y) { y = Reshape(x, s) }")
    model.graph.node[0].name = "reshape\n\x1b[31mit"
    with opened(model) as runner, pytest.raises(LayerwiseError) as caught:
        runner.infer({"x": np.ones(3, np.float32), "s": np.array([2, 2])})
    assert r"node 'reshape\\x0a\\x1b[31mit' (Reshape) failed" in str(caught.value)
    assert "{3}, requested shape:{2,2}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "onnxruntime_src" not in str(caught.value) and "::" not in str(caught.value)


def test_a_model_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LayerwiseError, match=r"cannot load the model: .*No Op registered for Foo"):
        opened(models.from_text("g (float[2] x) => (float[2] y) { y = Foo(x) }"))
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    with pytest.raises(BadFile, match=r"bad\.onnx: onnxruntime cannot load the model"):
        open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=bad))
    with pytest.raises(BadFile, match="no such file"):
        open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=tmp_path / "none.onnx"))


# Providers


@pytest.mark.parametrize("text", ["cpu", "CPU", "CPUExecutionProvider", "cpuexecutionprovider"])
def test_providers_are_found_by_partial_names(text: str) -> None:
    with opened(models.mlp(width=4), providers=[text]) as runner:
        assert runner.fallbacks() == []


def test_an_unknown_or_ambiguous_provider_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"'quantum' fits no provider .* CUDA"):
        opened(models.mlp(), providers=["quantum"])
    with pytest.raises(UsageError, match="'c' fits several providers"):
        opened(models.mlp(), providers=["c"])


def test_a_provider_missing_from_the_build_is_an_error() -> None:
    with pytest.raises(MissingDependency, match="built without DmlExecutionProvider"):
        opened(models.mlp(), providers=["dml"])


@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_a_provider_that_fails_to_load_does_not_fall_back_to_cpu(provider: str) -> None:
    try:
        runner = opened(models.mlp(), providers=[provider])
    except MissingDependency as error:
        assert "install" in str(error) and provider in str(error).lower()
    else:  # on a machine with the GPU it must be there
        assert any(provider in name.lower() for name in runner._session.get_providers())  # type: ignore[attr-defined]


# Notes


def test_fp16_nodes_on_the_cpu_give_a_warning() -> None:
    model = models.mlp()
    with opened(model) as runner:
        assert runner.notes() == []
    with opened(convert_precision(model, "float16", keep=["/fc0/MatMul"])) as runner:
        (note,) = runner.notes()
    assert "8 FP16 or bfloat16 nodes in FP32 (the first is '/fc0/Add')" in note
    with opened(emulate_precision(model, "float16")) as runner:
        assert runner.notes() == []


def test_notes_are_given_for_a_model_on_disk(tmp_path: Path) -> None:
    path = models.save(convert_precision(models.mlp(), "float16"), tmp_path / "half.onnx")
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
        assert len(runner.notes()) == 1


# Custom operators


def test_a_custom_operator_library_is_loaded() -> None:
    extensions = pytest.importorskip("onnxruntime_extensions")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.contrib" : 1]>'
        "g (string[n] x) => (string[n] y) { y = ai.onnx.contrib.StringUpper(x) }"
    )
    with opened(model, custom_ops=[extensions.get_library_path()]) as runner:
        assert runner.infer({"x": np.array(["ab", "c"], object)}).outputs["y"].tolist() == ["AB", "C"]
    with pytest.raises(LayerwiseError, match="StringUpper"):
        opened(model)


def test_an_invalid_custom_operator_library_is_rejected(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no library")
    with pytest.raises(BadFile, match=r"text\.so: not a custom-op library"):
        opened(models.mlp(), custom_ops=[str(text)])
    with pytest.raises(BadFile, match="no such custom-op library"):
        opened(models.mlp(), custom_ops=[str(tmp_path / "none.so")])


# Weights elsewhere, optimised graphs


def test_what_the_user_sets_of_a_session_stands_beside_what_is_usual() -> None:
    given = RunnerSpec(kind="onnxrt", session_config={"session.force_spinning_stop": "0"})
    usual = given.usual_settings(BRIEF_SPINNING)
    assert usual.session_settings == {**BRIEF_SPINNING, "session.force_spinning_stop": "0"}


def test_weights_stay_in_the_model_file(tmp_path: Path) -> None:
    path = models.write_sparse(tmp_path / "big.onnx", megabytes=64)
    model = ModelFile(path)
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=model.structure_bytes(), folder=model.folder)) as runner:
        assert runner.infer({"x": np.array([3], np.float32)}).outputs["y"].tolist() == [3]


def test_external_weights_are_found_next_to_the_model_and_elsewhere(tmp_path: Path) -> None:
    model = models.conv_net()
    image = {"image": np.random.default_rng(0).random((1, 3, 16, 16), np.float32)}
    with opened(model) as runner:
        want = runner.infer(image).outputs["scores"]
    path = models.with_external_weights(model, tmp_path / "net.onnx")
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
        np.testing.assert_array_equal(runner.infer(image).outputs["scores"], want)
    (tmp_path / "data").mkdir()
    (tmp_path / "weights.bin").rename(tmp_path / "data" / "weights.bin")
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path, folder=tmp_path / "data")) as runner:
        np.testing.assert_array_equal(runner.infer(image).outputs["scores"], want)
    with pytest.raises(BadFile, match=r"weights\.bin"):
        open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path))


def test_the_optimised_graph_is_bit_equal(tmp_path: Path) -> None:
    path = make_heavy(tmp_path, "squeezenet")
    spec = RunnerSpec(kind="onnxrt")
    with open_runner(spec, Loadable(path=path)) as runner:
        feed = {runner.inputs[0].name: np.random.default_rng(1).random((1, 3, 224, 224), np.float32)}
        want = runner.infer(feed).outputs
    dumped = optimized_model(spec, Loadable(path=path), tmp_path / "optimised.onnx")
    assert (tmp_path / "optimised.onnx").stat().st_size < 200_000 < (tmp_path / "optimised.onnx.weights").stat().st_size
    plain = RunnerSpec(kind="onnxrt", graph_optimization_level="disable")
    with open_runner(plain, dumped) as runner:
        got = runner.infer(feed).outputs
    assert {name: array.tobytes() for name, array in got.items()} == {
        name: array.tobytes() for name, array in want.items()
    }


@pytest.mark.parametrize("level", [
    "disable", "basic", "extended", "all",
    pytest.param("layout", marks=since("onnxruntime", "1.23", "no such level")),
])  # fmt: skip
def test_every_optimisation_level_runs(level: str) -> None:
    with opened(models.conv_net(), graph_optimization_level=level, threads=1) as runner:
        assert runner.infer({"image": np.ones((1, 3, 16, 16), np.float32)}).outputs["scores"].shape == (1, 4)
