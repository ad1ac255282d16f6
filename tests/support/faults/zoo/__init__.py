"""The models that faults are planted into: our own builders, ONNX's light networks with weights, and files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from support.faults.zoo.build import Array, Sample
from support.faults.zoo.cnn import cnn, inception
from support.faults.zoo.decoder import decoder
from support.faults.zoo.detector import detector
from support.faults.zoo.lstm import lstm
from support.faults.zoo.transformer import encoder
from support.heavy import heavy_model

__all__ = ["BUILDERS", "HEAVY", "Sample", "from_file", "names", "sample"]

BUILDERS: dict[str, Callable[[bool], Sample]] = {
    "cnn": cnn, "inception": inception, "encoder": encoder, "decoder": decoder, "detector": detector, "lstm": lstm,
}  # fmt: skip
HEAVY = ("densenet121", "resnet50")


def names(folder: Path | None = None) -> list[str]:
    """Every model there is; `folder`: further *.onnx files."""
    extra = sorted(path.stem for path in folder.glob("*.onnx") if "." not in path.stem) if folder else []
    return [*BUILDERS, *(f"heavy_{name}" for name in HEAVY), *extra]


def sample(name: str, folder: Path | None = None, small: bool = False) -> Sample:
    """The model `name` with its feed."""
    if name in BUILDERS:
        return BUILDERS[name](small)
    if name.startswith("heavy_"):
        model = _without_softmax(heavy_model(name.removeprefix("heavy_")))
        return Sample(model, _random_feed(model))
    if folder is None:
        raise SystemExit(f"no model {name!r}: there are {', '.join(names())}")
    return from_file(folder / f"{name}.onnx")


def from_file(path: Path) -> Sample:
    """A model of a file, with the inputs beside it (NAME.npz), else random ones: small integers, or normal numbers."""
    model, beside = onnx.load(path), path.with_suffix(".npz")
    if beside.exists():
        return Sample(model, dict(np.load(beside)))
    return Sample(model, _random_feed(model))


def _without_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """The network's logits: with random weights the last softmax saturates and hides what happens before it."""
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        output = last.output[0]
        del model.graph.node[-1]
        model.graph.node[-1].output[0] = output
    return model


def _random_feed(model: onnx.ModelProto) -> dict[str, Array]:
    random, weights = np.random.default_rng(3), {tensor.name for tensor in model.graph.initializer}
    feed = {}
    for value in model.graph.input:
        if value.name not in weights:
            kind = value.type.tensor_type
            shape = [dim.dim_value or 1 for dim in kind.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            drawn = random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 1000, shape)
            feed[value.name] = drawn.astype(dtype)
    return feed
