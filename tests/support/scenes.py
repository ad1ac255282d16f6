"""The files that the command lines of tests/data/commands.txt name, as the people have them who type those lines."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise.comparator import RunResults
from layerwise.json import save_json

LOADER = """
import numpy as np

def load_data():
    for _ in range(2):
        yield {{{name!r}: np.random.default_rng(0).random({shape}, dtype=np.float32)}}

calib_data = load_data
"""
NETWORK = """
import tensorrt

from layerwise import func
from layerwise.backend.trt import CreateNetwork, NetworkFromOnnxPath


@func.extend(NetworkFromOnnxPath("identity.onnx"))
def load_network(builder, network, parser):
    network.get_layer(0).name = "renamed"


@func.extend(CreateNetwork())
def create_network(builder, network):
    x = network.add_input("x", tensorrt.float32, (1, 4))
    made = network.add_activation(x, tensorrt.ActivationType.RELU)
    made.name = "from_scratch"
    network.mark_output(made.get_output(0))
"""
ENDS = ("output1", "output2", "final_output")
SHAPES = {
    "image": ("input", (1, 3, 224, 224)),
    "digits": ("tensor-0", (1, 1, 28, 28)),
    "identity": ("x", (1, 1, 2, 2)),
    "dynamic": ("X", (1, 2, 28, 28)),
}


def _save(path: Path, nodes: Sequence[onnx.NodeProto], inputs: list, outputs: list, weights: list = ()) -> None:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def _value(name: str, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _network(path: Path, name: str, channels: int, size: int, extra: Sequence[str] = ()) -> None:
    """A small classifier with the names that the lines mark; operators in `extra` come before its end."""
    rng, batch = np.random.default_rng(0), "batch"
    stride = size // 14 or 1
    kernel = numpy_helper.from_array(rng.normal(size=(4, channels, stride, stride)).astype("f") / stride, "kernel")
    scale = numpy_helper.from_array(np.linspace(0.5, 1.5, 4, dtype="f").reshape(1, 4, 1, 1), "scale")
    chain = ["sigmoid_output", *(f"{op.lower()}_output" for op in extra)]
    nodes = [
        helper.make_node("Conv", [name, "kernel"], ["conv1_output"], "conv1", strides=[stride, stride]),
        helper.make_node("Relu", ["conv1_output"], ["relu1_output"], "relu1"),
        helper.make_node("Mul", ["relu1_output", "scale"], ["intermediate"], "sensitive_layer"),
        helper.make_node("Sigmoid", ["intermediate"], ["sigmoid_output"], "problematic_layer"),
        *(helper.make_node(op, [a], [b], b) for op, a, b in zip(extra, chain, chain[1:], strict=False)),
        helper.make_node("Tanh", [chain[-1]], ["output1"], "tanh"),
        helper.make_node("ReduceMean", [chain[-1]], ["output2"], "mean", axes=[2, 3]),
        helper.make_node("Add", ["output1", "output2"], ["final_output"], "sum"),
    ]
    outputs = [_value(each, [batch, 4, side, side]) for each, side in zip(ENDS, (14, 1, 14), strict=True)]
    _save(path, nodes, [_value(name, [batch, channels, size, size])], outputs, [kernel, scale])


def _identity(path: Path, name: str, shape: Sequence[int | str]) -> None:
    _save(path, [helper.make_node("Identity", [name], ["y"], "identity")], [_value(name, shape)], [_value("y", shape)])


def _results(path: Path, value: float) -> None:
    results = RunResults()
    results.add([{"y": np.full((1, 1, 2, 2), value, np.float32)}], 0.1, "runner")
    path.parent.mkdir(exist_ok=True)
    results.save(path)


def _replay(tactic: int) -> str:
    """A tactic replay of one layer, as --save-tactics writes it."""
    fields = {"dtype": "DataType.FLOAT", "strides": [4, 1], "vectorized_dim": -1, "components_per_element": 1}
    tensor = {**fields, "polygraphy_class": "TensorInfo"}
    algorithm = {"implementation": 1, "tactic": tactic, "inputs": [tensor], "outputs": [tensor]}
    layers = {"conv1": {**algorithm, "polygraphy_class": "Algorithm"}}
    return json.dumps({"replay": layers, "polygraphy_class": "TacticReplayData"})


def prepare(root: Path) -> Path:
    """Write the files that every line may use below `root`; the folder, three levels down, that lines are run in."""
    folder = root / "user" / "work" / "models"
    folder.mkdir(parents=True)
    for name in ("model", "clean", "reduced", "resnet50", "dynamic_model", "large_model", "huge_model"):
        _network(folder / f"{name}.onnx", "input", 3, 224)
    _network(folder / "digits.onnx", "tensor-0", 1, 28)
    _network(folder / "model-NonZero.onnx", "input", 3, 224, ["NonZeroPlugin"])
    _network(folder / "custom.onnx", "input", 3, 224, ["CustomOp"])
    _identity(folder / "identity.onnx", "x", [1, 1, 2, 2])
    _identity(folder / "dynamic_identity.onnx", "X", ["n", 2, "h", "w"])
    _identity(folder / "dynamic_images.onnx", "X", ["n", 3, 28, 28])
    nodes = [helper.make_node("Mul", ["image", "mask"], ["masked"], "mul")]
    inputs = [_value("image", ["n", 3, 224, 224]), _value("mask", ["n", 1, 224, 224])]
    _save(folder / "multi_input_model.onnx", nodes, inputs, [_value("masked", ["n", 3, 224, 224])])
    for name, value in (("expected", 1.0), ("actual", 1.0005), ("outputs", 0.5), ("inference_results", 0.5),
                        ("results/model_fp32", 1.0), ("results/model_fp16", 1.001), ("model-output", 0.5)):  # fmt: skip
        _results(folder / f"{name}.json", value)
    shutil.move(folder / "model-output.json", folder / "model-output.txt")
    (folder / "replays" / "good").mkdir(parents=True)
    for name in ("build1.json", "build2.json", "replay.json", "model.tactic", "replays/good/0.json"):
        (folder / name).write_text(_replay(2))
    (folder / "example.py").write_text(NETWORK)
    api = root / "api" / "04_int8_calibration_in_tensorrt"
    api.mkdir(parents=True)
    (api / "example.py").write_text(LOADER.format(name="x", shape=(1, 1, 2, 2)))
    inputs_of(folder, "image")
    return folder


def inputs_of(folder: Path, kind: str) -> None:
    """Write saved inputs and loaders of them for one kind of model."""
    name, shape = SHAPES[kind]
    feed = {name: np.random.default_rng(3).random(shape, dtype=np.float32)}
    for saved in ("inputs.json", "real_data.json", "custom_inputs.json", "model-input.txt"):
        save_json([feed], folder / saved)
    for script in ("data_loader.py", "calibration_data.py"):
        (folder / script).write_text(LOADER.format(name=name, shape=shape))
