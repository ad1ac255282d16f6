"""Whether a file is whole, as somebody else reads it: by the formats' own libraries, not by Layerwise."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors import safe_open


def broken(path: Path) -> str:
    """What is wrong with a file; empty where it is whole, or of a kind that is not known here."""
    try:
        check = {".json": _json, ".onnx": _onnx, ".npz": _npz, ".safetensors": _safetensors, ".html": _html}
        check.get(path.suffix, Path.stat)(path)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def _json(path: Path) -> None:
    json.loads(path.read_bytes())


def _onnx(path: Path) -> None:
    model = onnx.load(path, load_external_data=False)
    if not model.ir_version or not model.HasField("graph"):
        raise ValueError("it holds no graph")


def _npz(path: Path) -> None:
    with np.load(path) as arrays:
        for name in arrays.files:
            arrays[name]


def _safetensors(path: Path) -> None:
    with safe_open(path, "numpy") as file:
        for name in file.keys():  # noqa: SIM118 (it is no mapping)
            file.get_slice(name)


def _html(path: Path) -> None:
    if not path.read_text().rstrip().endswith("</html>"):
        raise ValueError("it does not end")


def content_of(path: Path) -> tuple[list[str], dict[str, bytes]]:
    """A model's operators and the values of its weights, external data read; an exception where they are not there."""
    model = onnx.load(path)
    weights = {tensor.name: numpy_helper.to_array(tensor).tobytes() for tensor in model.graph.initializer}
    return [node.op_type for node in model.graph.node], weights
