"""Tensors that determine sizes without a limit, compared with the real Polygraphy's list."""

import json
import re
from pathlib import Path

import onnx
import pytest
from support.cli import layerwise, polygraphy
from support.models import from_text

MODELS = {
    "expand": (
        """g (float[N] x) => (float[M] y) <int64[1] at = {0}, int64[1] one = {1}> {
            n = NonZero(x)
            s = Shape(n)
            size = Slice(s, one, one)
            y = Expand(at_f, size)
        }""",
        [],  # no more than NonZero finds
    ),
    "expand_by_value": (
        """g (float[N] x) => (float[M] y) <int64[1] shape = {-1}> {
            c = ReduceMax<keepdims=0>(x)
            i = Cast<to=7>(c)
            size = Reshape(i, shape)
            y = Expand(at_f, size)
        }""",
        ["size"],
    ),
    "expand_to_input": (
        "g (float[N] x) => (float[N] y) { s = Shape(x)\n y = Expand(at_f, s) }",
        [],
    ),
    "range": (
        "g (float[N] x) => (int64[K] y) <int64 start = {0}, int64 step = {1}>"
        "{ c = ReduceSum<keepdims=0>(x)\n limit = Cast<to=7>(c)\n y = Range(start, limit, step) }",
        ["limit"],
    ),
    "min": (
        "g (float[N] x) => (int64[K] y) <int64 start = {0}, int64 step = {1}, int64 most = {100}>"
        "{ c = ReduceSum<keepdims=0>(x)\n l = Cast<to=7>(c)\n limit = Min(l, most)\n y = Range(start, limit, step) }",
        [],
    ),
    "given": (
        "g (float[2] x, int64[1] repeats) => (float[K] y) { y = Tile(x, repeats) }",
        [],
    ),
    "fixed": (
        "g (float[2] x) => (float[4] y) <int64[1] repeats = {2}> { y = Tile(x, repeats) }",
        [],
    ),
}  # fmt: skip


def saved(name: str, folder: Path) -> Path:
    model = from_text(MODELS[name][0])
    if "at_f" in MODELS[name][0]:
        model.graph.initializer.append(onnx.helper.make_tensor("at_f", 1, [1], [1.0]))
    onnx.save(model, folder / f"{name}.onnx")
    return folder / f"{name}.onnx"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("inference", [(), ("--shape-inference",)])
def test_the_tensors_equal_polygraphys(name: str, inference: tuple[str, ...], tmp_path: Path) -> None:
    line = ("inspect", "model", saved(name, tmp_path), "--list-unbounded-dds", *inference)
    theirs = re.search(r"unbounded DDS: (\[.*\])", polygraphy(*line, cwd=tmp_path).stdout)
    ours = re.search(r"unbounded DDS: (\[.*\])", layerwise(*line, cwd=tmp_path).stdout)
    assert theirs and ours
    assert re.findall(r"'([^']+)'", ours[1]) == re.findall(r"Variable \(([^)]+)\)", theirs[1])
    if inference:
        assert re.findall(r"'([^']+)'", ours[1]) == MODELS[name][1]


def test_values_derived_from_constants_are_not_data_dependent(tmp_path: Path) -> None:
    text = (
        "g (float[2] x) => (float[K] y) { two = Constant<value = int64[1] {2}>()\n"
        " repeats = Add(two, two)\n y = Tile(x, repeats) }"
    )
    onnx.save(from_text(text), tmp_path / "m.onnx")
    line = ("inspect", "model", "m.onnx", "--list-unbounded-dds", "--json")
    assert json.loads(layerwise(*line, cwd=tmp_path).stdout)["unbounded_dds"] == []
