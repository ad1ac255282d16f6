"""What a file holds, told quickly; a hostile one is told as such, and takes no longer."""

import os
import time
from pathlib import Path

import onnx
import pytest
from support.models import mlp

from layerwise._tool.backends.model.wire import put_bytes
from layerwise._tool.surgery.inspect.preview import preview


def test_a_model_is_told_by_its_inputs_outputs_and_nodes(tmp_path: Path) -> None:
    model = mlp()
    onnx.save(model, tmp_path / "m.onnx")
    found = preview(tmp_path / "m.onnx")
    assert not found.problem and found.whole
    assert found.nodes == len(model.graph.node)
    assert [value.name for value in found.inputs] == [value.name for value in model.graph.input]
    assert [value.name for value in found.outputs] == [value.name for value in model.graph.output]
    assert found.inputs[0].kind == "float32" and found.inputs[0].shape is not None
    assert found.opset == model.opset_import[0].version


def test_inputs_that_initializers_give_are_none(tmp_path: Path) -> None:
    model = mlp()
    model.ir_version = 3
    for weight in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
    onnx.save(model, tmp_path / "m.onnx")
    assert [value.name for value in preview(tmp_path / "m.onnx").inputs] == [model.graph.input[0].name]


def test_weights_that_are_not_there_are_named(tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx", save_as_external_data=True, location="far.data", size_threshold=0)
    assert preview(tmp_path / "m.onnx").missing == []
    (tmp_path / "far.data").unlink()
    assert preview(tmp_path / "m.onnx").missing == ["far.data"]


@pytest.mark.parametrize(("name", "data", "told"), [
    ("empty", b"", "an empty file"),
    ("text", b"hello, this is no model at all", "not an ONNX model"),
    ("length", b"\x08\x07\x3a\xff\xff\xff\xff\x0f", "claims 4294967295 bytes"),
    ("no graph", b"\x08\x07", "there is no graph in it"),
    ("no UTF-8", put_bytes(7, put_bytes(11, put_bytes(1, b"\xff\xfe"))), "not valid UTF-8"),
    ("nested", put_bytes(7, put_bytes(11, put_bytes(2, b"\x22\x03\x0a\x01" * 9))), "not an ONNX model"),
])  # fmt: skip
def test_what_is_no_model_says_why(name: str, data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert told in preview(path).problem


def test_what_is_no_file_says_so_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    assert preview(tmp_path / "pipe.onnx").problem
    assert preview(tmp_path).problem
    assert "No such file" in preview(tmp_path / "none.onnx").problem


def test_a_file_of_millions_of_fields_ends_at_the_deadline(tmp_path: Path) -> None:
    node = put_bytes(1, b"")
    (tmp_path / "m.onnx").write_bytes(put_bytes(7, node * 2_000_000))
    started = time.process_time()
    found = preview(tmp_path / "m.onnx", seconds=0.05)
    assert not found.whole and 0 < found.nodes < 2_000_000
    assert time.process_time() - started < 2
