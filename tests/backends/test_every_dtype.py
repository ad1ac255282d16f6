"""Every element type of the installed onnx: name, size, reading and display."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.arrays import same
from support.cli import layerwise

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.weight_arrays import pack, unpack
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, dtype_row, format_array, onnx_to_numpy, packed_nbytes, to_onnx
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, rounding_bound

NUMBERS = sorted(set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED})
PLAIN = [number for number in NUMBERS if number != TensorProto.STRING]


def drawn(number: int, count: int, seed: int) -> np.ndarray:
    """Return all bit patterns of a type."""
    row = dtype_row(dtype_name(number))
    random = np.random.default_rng(seed)
    if row.name == "bool":
        return random.integers(0, 2, count).astype(np.bool_)
    if row.name.startswith(("int", "uint")) and row.bits < 8:
        return random.integers(-(1 << 3), 1 << 3, count).astype(row.numpy)
    raw = random.integers(0, 256, count * row.numpy.itemsize, np.uint8)
    return (raw & np.uint8(min(255, (1 << row.bits) - 1))).view(row.numpy)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_type_has_a_name_and_agrees_with_onnx_and_numpy(number: int) -> None:
    name = dtype_name(number)
    assert name != "unknown" and to_onnx(name) == number
    assert helper.tensor_dtype_to_np_dtype(number) == onnx_to_numpy(number)


@settings(max_examples=100)
@given(st.sampled_from(PLAIN), st.integers(0, 41), st.integers(0, 10_000))
def test_weights_of_any_type_are_read_as_onnx_reads_them(
    tmp_path_factory: pytest.TempPathFactory, number: int, count: int, seed: int
) -> None:
    tensor = numpy_helper.from_array(drawn(number, count, seed), "w")
    assert len(tensor.raw_data) == packed_nbytes(dtype_name(number), (count,))
    expected = numpy_helper.to_array(tensor)
    graph = helper.make_graph([], "g", [], [], [tensor])
    path = tmp_path_factory.mktemp("dtype") / "model.onnx"
    onnx.save(helper.make_model(graph), path)
    with ModelFile(path) as model:
        assert same(model.array("w"), expected)
    outside = onnx.TensorProto(name="w", data_type=number, dims=[count], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="w.bin")
    (path.parent / "w.bin").write_bytes(tensor.raw_data)
    assert same(tensor_array(outside, path.parent), expected)


@settings(max_examples=50)
@given(st.sampled_from([2, 4, 6]), st.binary(max_size=50))
def test_packing_of_small_elements_is_lossless(bits: int, data: bytes) -> None:
    codes = np.frombuffer(data, np.uint8) & np.uint8((1 << bits) - 1)
    packed = pack(codes, bits)
    assert packed.size == (codes.size * bits + 7) // 8
    assert unpack(packed, bits, codes.size).tolist() == codes.tolist()


@pytest.mark.parametrize("number", PLAIN)
def test_values_are_displayed_and_compared_as_numbers(number: int) -> None:
    row = dtype_row(dtype_name(number))
    values = [1, 0, 1, 1] if row.bits < 8 and row.name.startswith(("int", "uint")) else [1, 2, 4, 2]
    array = np.array(values).astype(row.numpy)
    shown = [complex(part) for part in format_array(array).strip("[]").replace("True", "1").split()]
    if row.name != "bool":
        assert shown == [complex(value) for value in array.astype(np.complex128)]
    other = array.copy()
    other[0] = 0.5 if row.name == "float8_e8m0fnu" else 0  # it has no zero
    found = compare_arrays(array, other, Rule())
    assert found.passed is False and found.over == 1
    if "float" in row.name:
        assert 0 < rounding_bound((row.name, row.name)) < 16, "auto tolerances know the type"


def test_inspect_names_every_type(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info(f"in_{number}", number, [2]) for number in NUMBERS]
    onnx.save(helper.make_model(helper.make_graph([], "g", inputs, [])), tmp_path / "model.onnx")
    text = layerwise("inspect", "model", "model.onnx", cwd=tmp_path).stdout
    for number in NUMBERS:
        assert f"in_{number} [dtype={dtype_name(number)}, shape=(2,)]" in text


@pytest.mark.parametrize(
    ("word", "dtype", "values"),
    [
        ("float8e8m0", ml_dtypes.float8_e8m0fnu, [1, 2, 0.5, 64, 0.25]),
        ("uint2", ml_dtypes.uint2, [0, 1, 2, 3, 1]),
        ("int2", ml_dtypes.int2, [0, 1, -2, -1, 1]),
    ],
)
def test_onnxruntime_accepts_the_newest_types_it_supports(word: str, dtype: type, values: list[float]) -> None:
    kind = TensorProto.DataType.Value(word.upper())
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "g",
        [helper.make_tensor_value_info("x", kind, [5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])],
    )
    model = helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 25)])
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=model.SerializeToString())) as runner:
        assert runner.inputs[0].dtype == dtype_name(kind)
        assert runner.infer({"x": np.array(values).astype(dtype)}).outputs["y"].tolist() == values
