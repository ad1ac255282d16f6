"""Modules beside an index: written by a worker, read by the app, searched by the filter."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.big_graph import chain_model
from support.exported import note, noted_pair

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits.attributes import RenameNode
from layerwise._tool.surgery.edits.nodes import InsertNode
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.build_modules import answer_modules
from layerwise._tool.surgery.graph.numbering import Numbering
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.origin.origin import Origin, SourceLine


def indexed(model: Path, folder: Path) -> GraphIndex:
    with ModelFile(model) as file:
        return build_index(file, folder, shape_inference=False)


def test_what_the_exporter_noted_is_there_once_a_worker_has_read_it(tmp_path: Path) -> None:
    model = noted_pair(tmp_path)[0]
    index = indexed(model, tmp_path / "index")
    assert index.modules() is None
    assert index.search("module:block").tolist() == []
    assert answer_modules(None, {"path": str(model), "folder": str(index.folder)}) == {"nodes": 7}  # type: ignore[arg-type]
    again = GraphIndex.open(index.folder)
    modules = again.modules()
    assert modules is not None
    assert modules.origin(0) == Origin(
        ("block.0", "proj"),
        ("net.Net", "net.Block", "torch.nn.Linear"),
        "mm_0",
        SourceLine("/src/net.py", 12, "forward"),
    )
    assert [modules.text(node) for node in (5, 6)] == ["block.1", "block.1"]
    assert modules.origin(6) == Origin(("block.1",), ("net.Net", "net.Block"), told="neighbours")
    assert again.search("module:BLOCK.1. !op:cast").tolist() == [3, 4, 5]
    assert again.search("!module:proj. module:0").tolist() == [2]


def test_a_model_that_has_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    model, other = noted_pair(tmp_path)
    index = indexed(model, tmp_path / "index")
    proto = onnx.load(other)
    proto.graph.node[0].name = "renamed"
    onnx.save(proto, model)
    with pytest.raises(BadFile, match="changed"):
        answer_modules(None, {"path": str(model), "folder": str(index.folder)})  # type: ignore[arg-type]


def test_damaged_columns_count_as_absent(tmp_path: Path) -> None:
    model = noted_pair(tmp_path)[0]
    index = indexed(model, tmp_path / "index")
    answer_modules(None, {"path": str(model), "folder": str(index.folder)})  # type: ignore[arg-type]
    file = index.folder / "modules.index"
    file.write_bytes(file.read_bytes()[:-200])
    assert GraphIndex.open(index.folder).modules() is None


def test_names_tell_where_nothing_was_noted(tmp_path: Path) -> None:
    index = indexed(chain_model(tmp_path / "chain.onnx", 14), tmp_path / "index")
    modules = index.modules()
    assert modules is not None
    assert [modules.text(node) for node in (0, 6, 7, 13)] == ["encoder.layer.0"] * 2 + ["encoder.layer.1"] * 2
    assert index.search("module:layer.1.").tolist() == list(range(7, 14))


def test_bodies_have_modules_too(tmp_path: Path) -> None:
    bodies = []
    for name in ("then", "else"):
        inner = [helper.make_node("Relu", ["x"], [f"{name}_r"]),
                 note(helper.make_node("Neg", [f"{name}_r"], [f"{name}_y"]), f"block.0.{name}", "neg")]  # fmt: skip
        made = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [2])
        bodies.append(helper.make_graph(inner, name, [], [made]))
    choice = helper.make_node("If", ["c"], ["y"], "if", then_branch=bodies[0], else_branch=bodies[1])
    graph = helper.make_graph(
        [note(choice, "block.0", "cond")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
         helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    model = tmp_path / "if.onnx"
    onnx.save(helper.make_model(graph), model)
    index = indexed(model, tmp_path / "index")
    answer_modules(None, {"path": str(model), "folder": str(index.folder)})  # type: ignore[arg-type]
    modules = index.modules()
    assert modules is not None
    found = {(index.node_op(node), modules.text(node)) for node in range(index.n_nodes)}
    assert found == {("If", "block.0"), ("Relu", "block.0.then"), ("Relu", "block.0.else"), ("Neg", "block.0.then"),
                     ("Neg", "block.0.else")}  # fmt: skip


def test_an_edited_graph_keeps_the_modules_of_its_files_nodes(tmp_path: Path) -> None:
    model = noted_pair(tmp_path)[0]
    index = indexed(model, tmp_path / "index")
    answer_modules(None, {"path": str(model), "folder": str(index.folder)})  # type: ignore[arg-type]
    with ModelFile(model) as file:
        numbering = Numbering(index, Structure.open(file))
    edited = InsertNode(tensor="mm_1", op="Relu").apply(numbering.structure)
    overlay = Overlay(numbering, RenameNode(node="node_add_1", to="renamed").apply(edited))
    modules = overlay.modules()
    assert modules is not None
    new = next(node for node in overlay.order.tolist() if overlay.node_op(node) == "Relu")
    assert (modules.text(4), modules.text(new), modules.origin(new)) == ("block.1.proj", "", None)
    assert sorted(overlay.search("module:block.1.proj.").tolist()) == [3, 4]
