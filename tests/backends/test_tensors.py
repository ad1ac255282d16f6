"""Types by name, by ONNX number and by NumPy type; unambiguous display of values."""

import numpy as np
import onnx
import pytest
from support.arrays import NAMES, sample

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import (
    dtype_name,
    dtype_row,
    format_array,
    format_shape,
    format_value,
    onnx_to_numpy,
    packed_nbytes,
    to_numpy,
    to_onnx,
)


@pytest.mark.parametrize("name", NAMES)
def test_every_type_is_found_by_all_its_names(name: str) -> None:
    assert dtype_name(to_numpy(name)) == name
    assert dtype_name(to_onnx(name)) == name
    assert dtype_name(sample(name)) == name
    assert onnx_to_numpy(to_onnx(name)) == to_numpy(name)


@pytest.mark.parametrize("name", NAMES)
def test_types_agree_with_onnx(name: str) -> None:
    if to_onnx(name) not in onnx.TensorProto.DataType.values():
        pytest.skip("this onnx does not have the type")
    theirs = onnx.helper.tensor_dtype_to_np_dtype(to_onnx(name))
    assert theirs == to_numpy(name)


def test_every_onnx_type_is_covered() -> None:
    numbers = set(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
    assert {dtype_name(number) for number in numbers} - {"unknown"} == {
        name for name in NAMES if to_onnx(name) in numbers
    }


def test_numpy_text_types_are_strings() -> None:
    for array in (np.array(["a"]), np.array([b"a"]), np.array(["a"], object)):
        assert dtype_name(array) == "string"


def test_errors_for_unknown_types_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="float32"):
        dtype_row("float3\x1b")
    with pytest.raises(UsageError):
        onnx_to_numpy(0)
    assert dtype_name(999) == "unknown"


def test_packed_sizes_equal_onnxs() -> None:
    assert packed_nbytes("int4", (3, 3)) == 5
    assert packed_nbytes("float32", ()) == 4
    assert packed_nbytes("int2", (5,)) == 2


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_all_types_show_their_values(name: str) -> None:
    text = format_array(sample(name, (2, 3)))
    assert text.startswith("[[")
    assert text.isprintable() or name != "string" or "\x1b" not in text


def test_numpy_types_show_as_numpy_shows_them() -> None:
    array = np.random.default_rng(0).random((30, 50)).astype(np.float32)
    with np.printoptions(edgeitems=2, linewidth=60):
        assert format_array(array, 2, 60) == str(array)
    assert format_array(np.array(1.5)) == "1.5"


def test_raw_bytes_are_not_shown_as_numbers() -> None:
    assert "type is not known" in format_array(np.zeros(3, "V2"))


def test_values_and_shapes_are_formatted_unambiguously() -> None:
    assert format_value("a\x1b[31m") == '"a\\x1b[31m"'
    assert format_value(to_numpy("bfloat16").type(0.1)) == "0.1001"
    assert format_value(to_numpy("int4").type(-8)) == "-8"
    assert format_shape((1, "N\n", None)) == "1xN\\x0ax?"
    assert format_shape(()) == "scalar"
    assert format_shape(None) == "?"
