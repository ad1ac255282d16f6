"""The files that the commands of docs/coverage.md name."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.baselines import accept, pair

from layerwise._tool.surgery.precision.nodes import convert_precision

LOADER = """
import numpy as np

def load_data():
    rng = np.random.default_rng(0)
    for _ in range(2):
        yield {"input": rng.random((1, 3, 8, 8), dtype=np.float32)}

def half_batches():
    for batch in (2, 4):
        yield {"input": np.ones((batch, 3, 8, 8), dtype=np.float32)}
"""

IMAGES = """
import pathlib
import numpy as np

HERE = pathlib.Path(__file__).parent

def pictures():
    for path in sorted((HERE / "images").glob("*.npy")):
        yield np.load(path, allow_pickle=False)

def load_data():
    for picture in pictures():
        yield {"input": (picture.transpose(2, 0, 1)[None] / 255).astype(np.float32)}

def normalised():
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    for picture in pictures():
        yield {"input": ((picture / 255 - mean) / deviation).transpose(2, 0, 1)[None].astype(np.float32)}
"""

COMPARE = """
import numpy as np

def compare_outputs(iter_result0, iter_result1):
    return {name: bool(np.allclose(iter_result0[name], iter_result1[name], atol=1e-2)) for name in iter_result0}
"""


def _classifier(path: Path, scale: float = 1.0) -> None:
    rng = np.random.default_rng(0)
    weights = {
        "conv.weight": rng.standard_normal((4, 3, 3, 3)).astype(np.float32) * 0.3,
        "fc.weight": rng.standard_normal((4, 5)).astype(np.float32) * np.float32(scale),
    }
    nodes = [
        helper.make_node("Conv", ["input", "conv.weight"], ["conv_out"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv_out"], ["relu_out"], "relu"),
        helper.make_node("GlobalAveragePool", ["relu_out"], ["pool_out"], "pool"),
        helper.make_node("Flatten", ["pool_out"], ["flat_out"], "flat"),
        helper.make_node("MatMul", ["flat_out", "fc.weight"], ["logits"], "fc"),
        helper.make_node("Softmax", ["logits"], ["output"], "softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 5])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _two_inputs(path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["image", "mask"], ["masked"], "mul")],
        "two_inputs",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1, 4, 4]) for name in ("image", "mask")],
        [helper.make_tensor_value_info("masked", TensorProto.FLOAT, ["n", 1, 4, 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _overflowing(path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], ["y"], "log")],
        "overflowing",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _replay(tactic: int) -> dict[str, object]:
    """A tactic replay of one layer, as --save-tactics writes it."""
    fields = {"dtype": "DataType.FLOAT", "strides": [4, 1], "vectorized_dim": -1, "components_per_element": 1}
    tensor = {**fields, "polygraphy_class": "TensorInfo"}
    algorithm = {"implementation": 1, "tactic": tactic, "inputs": [tensor], "outputs": [tensor]}
    layers = {"conv": {**algorithm, "polygraphy_class": "Algorithm"}}
    return {"replay": layers, "polygraphy_class": "TacticReplayData"}


def prepare(folder: Path) -> Path:
    """Write every file that a row of the table names into `folder`, and return it."""
    from polygraphy.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
    from polygraphy.comparator import Comparator, DataLoader
    from polygraphy.json import save_json

    _classifier(folder / "model.onnx")
    _classifier(folder / "other.onnx", scale=1.01)
    _two_inputs(folder / "two_inputs.onnx")
    _overflowing(folder / "log.onnx")
    half = convert_precision(onnx.load(folder / "model.onnx"), "float16")
    onnx.save(half, folder / "model_fp16.onnx")
    (folder / "loader.py").write_text(LOADER)
    (folder / "matrix.toml").write_text('models = ["model.onnx"]\n[sides]\ncpu = ["--onnxrt", "--onnxrt"]\n')
    (folder / "wrong.toml").write_text('models = ["model.onnx"]\n[sides]\ncpu = 3\n')
    (folder / "compare.py").write_text(COMPARE)
    (folder / "images.py").write_text(IMAGES)
    (folder / "images").mkdir()
    for number in range(3):
        np.save(folder / "images" / f"{number}.npy", np.full((8, 8, 3), 80 * number, np.uint8))
    (folder / "broken.onnx").write_bytes(b"not a model")
    loader = DataLoader(iterations=2)
    for name in ("model", "other"):
        runner = OnnxrtRunner(SessionFromOnnx(str(folder / f"{name}.onnx")))
        results = Comparator.run([runner], data_loader=loader)
        results.save(str(folder / f"{name}_outputs.json"))
        for number, outputs in enumerate(results[0][1] if name == "model" else ()):
            (folder / "dump" / f"iter{number}").mkdir(parents=True)
            np.save(folder / "dump" / f"iter{number}" / "out__put.npy", outputs["output"])
    save_json([dict(feed) for feed in loader], str(folder / "inputs.json"))
    for name in ("good", "bad"):
        (folder / "replays" / name).mkdir(parents=True)
        (folder / "replays" / name / "0.json").write_text(json.dumps(_replay(len(name))))
    times = [{"latencyMs": 1 + 0.01 * (run % 7), "computeMs": 1.0} for run in range(60)]
    (folder / "times.json").write_text(json.dumps(times))
    (folder / "profile.json").write_text(json.dumps([{"count": 9}, {"name": "a", "averageMs": 1, "percentage": 100}]))
    (folder / "rename.json").write_text(json.dumps({"output": "output"}))
    accept(pair(folder / "model.onnx", folder / "model.onnx"), folder / "held.baseline")
    return folder
