"""Sanitizing in one command: order of the steps, shapes of a run, errors."""

from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from support import models, surgeon_zoo
from support.models import from_text

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.sanitize.action import SanitizeSpec, marked, sanitized


def done(model: onnx.ModelProto, folder: Path, **what: object) -> Structure:
    path = models.save(model, folder / "model.onnx")
    return sanitized(Structure.open(ModelFile(path)), SanitizeSpec(**what), lambda level, text: None)  # type: ignore[arg-type]


def dims(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]


def test_other_input_shapes_reach_every_tensor_and_can_be_folded(tmp_path: Path) -> None:
    before = done(surgeon_zoo.partly_dynamic_shapes(), tmp_path, fold=True, threshold=1 << 30)
    assert "Shape" in {node.op_type for node in before.nodes}
    static = done(surgeon_zoo.partly_dynamic_shapes(), tmp_path, shapes={"x": [5, 3, 4]}, fold=True, threshold=1 << 30)
    assert [node.op_type for node in static.nodes] == ["Reshape"]
    assert dims(static.inputs[0]) == [5, 3, 4] and dims(static.outputs[0]) == [5, 12]
    dynamic = done(models.mlp(), tmp_path, shapes={"x": ["n", 16]})
    assert dims(dynamic.inputs[0]) == ["n", 16] and dims(dynamic.outputs[0]) == ["n", 16]


def test_a_name_with_a_wildcard_is_itself_and_what_it_stands_for() -> None:
    names = ["a0", "a*", "a1", "y"]
    nodes = [onnx.helper.make_node("Abs", [one], [next_one]) for one, next_one in pairwise(names)]
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("a0", "y")]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = Structure.from_proto(onnx.helper.make_model(graph))
    assert marked(model, ["a*"], [], []).output_names == ["a*", "a1"]  # not the input
    assert marked(model, ["*"], [], ["a1"]).output_names == ["a*", "y"]
    with pytest.raises(UsageError, match="no tensor 'nothing'"):
        marked(model, None, [], ["nothing"])


def test_an_inner_tensor_given_a_shape_becomes_an_input(tmp_path: Path) -> None:
    model = done(models.mlp(), tmp_path, shapes={"h0": [2, 16]})
    assert [value.name for value in model.inputs] == ["x", "h0"]
    assert model.nodes[0].name == "/fc1/MatMul" and dims(model.outputs[0]) == [2, 16]


def test_shapes_can_come_from_a_run(tmp_path: Path) -> None:
    model = done(models.dynamic_model(), tmp_path, fallback=True, feeds=FeedSpec(shapes={"x": [[3, 5]]}))
    assert dims(model.inputs[0]) == [3, 5]
    assert all(all(isinstance(dim, int) for dim in dims(value)) for value in model.values.values())
    assert {"r", "s", "w", "i"} <= model.values.keys()


def test_outputs_are_selected_by_name_glob_type_and_exclusion(tmp_path: Path) -> None:
    def names(**what: object) -> list[str]:
        return done(models.mlp(), tmp_path, **what).output_names

    assert names(outputs=["*"]) == [f"{kind}{i}" for i in range(2) for kind in "mah"] + ["m2", "a2", "y"]
    assert names(outputs=["h?", "y"]) == ["h0", "h1", "y"]
    assert names(by_type=["matmul"]) == ["m0", "m1", "m2"]
    assert names(outputs=["*"], exclude=["a*", "m*"]) == ["h0", "h1", "y"]
    for what in ({"outputs": ["nonesuch"]}, {"by_type": ["Nonesuch"]}, {"exclude": ["*"]}):
        with pytest.raises(UsageError):
            names(**what)


def test_unused_nodes_are_removed_and_the_rest_sorted(tmp_path: Path) -> None:
    assert len(done(surgeon_zoo.tail(), tmp_path).nodes) == 11
    clean = done(surgeon_zoo.tail(), tmp_path, cleanup=True)
    assert len(clean.nodes) == 9 and "unused_weight" not in clean.initializers
    sorted_ = done(surgeon_zoo.unsorted(), tmp_path, toposort=True)
    assert [node.name for node in sorted_.nodes] == ["scale", "turn", "double", "single", "use"]
    cyclic = from_text("c (float[2] x) => (float[2] y) { [a] p = Add(x, q) [b] q = Neg(p) [c] y = Neg(q) }")
    with pytest.raises(LayerwiseError, match="cycle"):
        done(cyclic, tmp_path, toposort=True)
