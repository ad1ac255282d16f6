"""TensorFlow is not run here: whatever needs it says how to get an ONNX model instead."""

from collections.abc import Sequence
from typing import Any, NoReturn

from layerwise._tool.backends.errors import MissingDependency


def refuse(what: str) -> NoReturn:
    """MissingDependency that says how to convert a model."""
    raise MissingDependency(
        f"{what} needs TensorFlow 1, which is not run here. Convert the model to ONNX: pip install tf2onnx; "
        "python -m tf2onnx.convert --graphdef model.pb --inputs in:0 --outputs out:0 --output model.onnx (or "
        "--saved-model FOLDER, --keras FILE, --checkpoint FILE), then use the ONNX loaders and runners"
    )


def load_graph(path: Any) -> Any:
    refuse("load_graph")


def find_nodes_by_ops(graphdef: Any, ops: Sequence[str]) -> Any:
    refuse("find_nodes_by_ops")


def map_node_outputs(graphdef: Any) -> Any:
    refuse("map_node_outputs")


def get_tensor_metadata(tensors: Any) -> Any:
    refuse("get_tensor_metadata")


def get_input_metadata(graph: Any) -> Any:
    refuse("get_input_metadata")


def get_output_metadata(graph: Any, layerwise: bool = False) -> Any:
    refuse("get_output_metadata")


def get_graph_output_names(graph: Any) -> Any:
    refuse("get_graph_output_names")


def str_from_graph(
    graph: Any, show_layers: bool | None = None, show_attrs: bool | None = None, show_weights: bool | None = None
) -> Any:
    refuse("str_from_graph")
