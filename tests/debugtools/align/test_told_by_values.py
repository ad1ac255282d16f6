"""Weights are looked at where what nodes compute does not tell what belongs together, and change nothing else."""

from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
from msgspec import structs
from support.aligning import convnet, encoder, feed_of, renamed, scaled_weight, side

from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.align.told_by_values import told_by_values

MODELS = {"encoder": encoder(parts=True), "whole": encoder(parts=False), "cnn": convnet()}
Pairs = set[tuple[str, str, str]]


def optimised(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    options, path = ort.SessionOptions(), folder / "optimised.onnx"
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def sides(first: onnx.ModelProto, second: onnx.ModelProto, folder: Path) -> tuple[SideData, SideData]:
    return side(first, feed_of(first), folder)[0], side(second, feed_of(first), folder)[0]


def computed(data: SideData) -> set[str]:
    return {name for node in data.graph.nodes for name in node.outputs}


def without_weights(data: SideData) -> SideData:
    """As it is where large weights are not looked at."""
    prints = {name: known for name, known in data.prints.items() if name in computed(data) or known.size <= 16}
    return structs.replace(data, prints={name: data.prints[name] for name in (*prints, *data.graph.inputs)})


def pairs(first: SideData, second: SideData) -> Pairs:
    made = computed(first)
    return {(each.tensor, each.other, each.confidence) for each in align(first, second).pairs if each.tensor in made}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [lambda model, _: model, optimised], ids=["same", "optimised"])
def test_models_that_agree_align_alike_without_their_weights(name: str, way, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    data = sides(MODELS[name], renamed(way(MODELS[name], tmp_path))[0], tmp_path)
    for one, other in (data, data[::-1]):
        assert told_by_values(one, other)
        assert pairs(without_weights(one), without_weights(other)) == pairs(one, other)


def test_a_fault_asks_for_the_weights(tmp_path: Path) -> None:
    model = MODELS["encoder"]
    wrong = scaled_weight(model, "l1.up.w", 1.05)
    assert not told_by_values(*sides(model, renamed(wrong)[0], tmp_path))


def test_so_does_an_output_that_was_not_seen(tmp_path: Path) -> None:
    one, other = sides(MODELS["cnn"], renamed(MODELS["cnn"])[0], tmp_path)
    seen = {name: known for name, known in other.prints.items() if name not in other.graph.outputs}
    assert not told_by_values(one, structs.replace(other, prints=seen))
