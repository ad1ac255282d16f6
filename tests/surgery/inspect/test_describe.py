import json
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.sample_models import DATA, FLOAT, if_model, mlp, model, node_test_models

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.inspect.document import action_inspect_model, describe_model_json
from layerwise._tool.surgery.inspect.text import describe_model
from layerwise._tool.surgery.weights.statistics import answer_weights, weight_statistics

ALL = ("layers", "attrs", "weights")


def saved(proto: onnx.ModelProto | bytes, folder: Path) -> ModelFile:
    path = folder / "m.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    return ModelFile(path)


def lines(proto: onnx.ModelProto, folder: Path, *show: str) -> list[str]:
    with saved(proto, folder) as file:
        return list(describe_model(file, show))


def polygraphy_lines(proto: onnx.ModelProto, show: tuple[str, ...]) -> list[str]:
    """What `polygraphy inspect model` prints: its logger indents all lines but the first."""
    from polygraphy.backend.onnx.util import str_from_onnx
    from polygraphy.logger import G_LOGGER

    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    text = str_from_onnx(proto, *(part in show for part in ALL)).strip()
    return ["==== ONNX Model ====", *("    " + line for line in text.splitlines())]


@pytest.mark.parametrize("show", [(), ("layers",), ("weights",), ("layers", "attrs"), ALL])
@pytest.mark.parametrize("name", ["mlp", "if", "squeezenet"])
def test_the_layout_equals_polygraphys(tmp_path: Path, name: str, show: tuple[str, ...]) -> None:
    made = {"mlp": mlp, "if": if_model, "squeezenet": lambda: onnx.load(DATA / "light" / "light_squeezenet.onnx")}
    proto = made[name]()
    assert lines(proto, tmp_path, *show) == polygraphy_lines(proto, show)


def test_all_onnx_node_tests_are_described_like_polygraphy(tmp_path: Path) -> None:
    """Left out: types that Polygraphy has no name for, and unknown ranks, which it shows as ()."""
    same = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in node_test_models()[::4]:
            proto = onnx.load_from_string(data)
            expected = "\n".join(line.rstrip() for line in polygraphy_lines(proto, ALL))
            if re.search(r"dtype=\d|dtype=None|shape=\(\)|\[shape|float8", expected):
                continue
            assert "\n".join(line.rstrip() for line in lines(proto, tmp_path, *ALL)) == expected, name
            same += 1
    assert same > 300


def test_cases_that_polygraphy_gets_wrong_are_right(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    proto = model([node], ["x"], ["y"], shape=None)
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT4
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.BFLOAT16, None)
    proto.graph.output.append(sequence)
    text = "\n".join(lines(proto, tmp_path))
    assert "{x [dtype=int4]}" in text
    assert " s [dtype=sequence(bfloat16)]}" in text


def test_text_of_the_model_is_escaped(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="a\n\x1b[31mred\u202e", note="b\r\nc")
    proto = model([node], ["x"], ["y"], shape=["\x07N", 2])
    proto.graph.doc_string = "first\nsecond\x1b]0;title\x07"
    text = "\n".join(lines(proto, tmp_path, *ALL))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", text)
    assert r"a\x0a\x1b[31mred\u202e [Op: Relu]" in text
    assert "    second\\x1b]0;title\\x07" in text.splitlines()


@pytest.mark.parametrize("threshold", [1000, sys.maxsize])
def test_output_is_bounded(tmp_path: Path, threshold: int) -> None:
    """Whatever a script of the user has had NumPy print."""
    weights = [numpy_helper.from_array(np.arange(1 << 20, dtype=np.float32), "w")]
    node = helper.make_node("Relu", ["x"], ["y"], many=list(range(100_000)))
    with np.printoptions(threshold=threshold):
        text = "\n".join(lines(model([node], ["x"], ["y"], weights, shape=[2]), tmp_path, *ALL))
    assert len(text) < 20_000
    assert "(100000 in all)" in text
    assert re.search(r"\[0\.0+e\+00 1\.0+e\+00 .*\.\.\.", text)


def test_damaged_weights_are_reported_in_place(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[5], raw_data=b"abcd")
    text = "\n".join(lines(model([], [], [], [tensor]), tmp_path, "weights"))
    assert "4 bytes for float32 [5]" in text


def test_shapes_are_inferred_on_request(tmp_path: Path) -> None:
    with saved(mlp(width=8, layers=1), tmp_path) as file:
        assert not any("g0 [dtype" in line for line in describe_model(file, ("layers",)))
        inferred = list(describe_model(file, ("layers",), shape_inference=True))
    assert "         -> {g0 [dtype=float32, shape=('N', 8)]}" in inferred


def test_the_json_describes_the_model(tmp_path: Path) -> None:
    with saved(if_model(), tmp_path) as file:
        short = describe_model_json(file)
        full = describe_model_json(file, ALL)
    assert json.loads(json.dumps(full))["opset"] == 17
    assert short["inputs"] == [{"name": "x", "dtype": "float32", "shape": (512,)}]
    assert (short["n_nodes"], short["n_initializers"], "nodes" in short) == (3, 2, False)
    choose = full["nodes"][2]
    assert choose["op"] == "If"
    inner = choose["attributes"]["else_branch"]
    assert inner["initializers"][0]["values"] == [2.0] * 512
    assert inner["nodes"][0]["inputs"][1] == {"name": "inner", "dtype": "float32", "shape": (512,), "initializer": True}


class Context(SimpleNamespace):
    def log(self, text: str, level: str) -> None:
        self.texts = [*getattr(self, "texts", []), (level, text)]


def test_the_action_logs_lines_in_bounded_events(tmp_path: Path) -> None:
    proto = onnx.load(DATA / "light" / "light_squeezenet.onnx")
    with saved(proto, tmp_path) as file:
        expected = list(describe_model(file, ["layers"]))
    params: dict[str, Any] = {"path": str(tmp_path / "m.onnx"), "show": ["layers"]}
    context = Context(params=params)
    assert action_inspect_model(context) == {}
    assert "\n".join(text for _, text in context.texts).split("\n") == expected
    assert all(level == "out" and len(text) < 3500 for level, text in context.texts)
    described = action_inspect_model(Context(params={**params, "json": True}))["description"]
    assert described["n_nodes"] == len(proto.graph.node)


def test_weight_statistics_cover_every_type(tmp_path: Path) -> None:
    values = np.linspace(-1, 3, 4096, dtype=np.float32).reshape(64, 64)
    spoiled = values.copy()
    spoiled[3, 4], spoiled[0, 0], spoiled[0, 1] = np.nan, np.inf, 0
    tensors = {
        "plain": numpy_helper.from_array(values, "plain"),
        "spoiled": numpy_helper.from_array(spoiled, "spoiled"),
        "half": numpy_helper.from_array(values.astype(np.float16), "half"),
        "text": helper.make_tensor("text", TensorProto.STRING, [1], [b"a\n"]),
        "none": numpy_helper.from_array(np.zeros((0, 3), np.float32), "none"),
        "nans": numpy_helper.from_array(np.full(4, np.nan, np.float32), "nans"),
    }
    with saved(model([], [], [], list(tensors.values())), tmp_path) as file:
        plain, bad, half, text, none, nans = (weight_statistics(file, name) for name in tensors)
        with pytest.raises(BadFile, match="no initializer"):
            weight_statistics(file, "nothing")
    assert plain["mean"] == pytest.approx(1)
    assert plain["std"] == pytest.approx(values.std())
    assert (plain["min"], plain["max"], plain["argmin"], plain["argmax"]) == (-1, 3, [0, 0], [63, 63])
    assert sum(plain["histogram"]["counts"]) == 4096
    finite = spoiled[np.isfinite(spoiled)]
    assert (bad["nan"], bad["inf"], bad["zeros"]) == (1, 1, 1)
    assert bad["mean"] == pytest.approx(finite.mean(dtype=np.float64))
    assert bad["argmin"] == [0, 2]
    assert (half["dtype"], half["shape"]) == ("float16", [64, 64])
    assert (text["mean"], text["sample"]) == (None, ["a\\x0a"])
    assert (none["size"], none["mean"], none["argmax"]) == (0, None, None)
    assert (nans["nan"], nans["mean"], nans["histogram"]) == (4, None, None)
    params = {"path": str(tmp_path / "m.onnx"), "names": ["plain", "bad"]}
    with pytest.raises(BadFile):
        answer_weights(Context(), params)
    assert answer_weights(Context(), params | {"names": ["plain"]}) == {"plain": plain}
