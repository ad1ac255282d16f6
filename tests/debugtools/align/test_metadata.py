"""What an exporter writes about nodes pairs tensors too, and what a graph holds that is odd does no harm."""

import numpy as np
from onnx import TensorProto, helper
from support.aligning import encoder, feed_of, renamed, side

from layerwise._tool.debugtools.align.file import load_map, save_map
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph
from layerwise._tool.debugtools.align.operators import is_view, operator_class
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.surgery.model.structure import Structure


def exported(name: str, metadata: dict[str, str]) -> AlignNode:
    node = helper.make_node("Relu", ["x"], ["y"], name)
    for key, value in metadata.items():
        node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    values = [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, [2]) for tensor in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    return onnx_graph(Structure.from_proto(model)).nodes[0]


def test_metadata_of_the_exporter_tells_module_and_fx_node() -> None:
    scopes = "['', 'encoder', 'encoder.layer.0', 'relu_1']"
    fx_node = "%relu_1 : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})"
    node = exported("node_relu_1", {"name_scopes": scopes, "fx_node": fx_node})
    assert (node.scope, node.source) == (("encoder", "encoder.layer.0"), "relu_1")
    assert exported("/encoder/layer.0/Relu", {}).scope == ("encoder", "layer.0")


def test_broken_metadata_is_passed_over() -> None:
    for text in ("[", "__import__('os')", "[" * 10_000, "1", "{}", "'a'"):
        assert exported("n", {"name_scopes": text}).scope == ()


def test_an_fx_node_is_paired_by_its_name() -> None:
    exp, mul = AlignNode("Exp", ("x",), ("e",), source="gelu"), AlignNode("Mul", ("e", "x"), ("m",), source="gelu")
    one = AlignGraph((exp, mul), ("x",), ("m",))
    other = AlignGraph((AlignNode("aten.gelu.default", ("y",), ("gelu",), "gelu"),), ("y",), ("gelu",))
    found = align(SideData(one, {}), SideData(other, {}))
    pair = next(pair for pair in found.pairs if pair.tensor == "m")
    assert (pair.other, pair.confidence) == ("gelu", "likely")
    assert "metadata" in pair.reasons


def test_operators_of_torch_and_onnx_have_one_class() -> None:
    assert operator_class("aten.addmm.default") == operator_class("Gemm") == operator_class("aten::linear")
    assert operator_class("aten.add.Tensor") == operator_class("Add") == operator_class("com.microsoft::QLinearAdd")
    assert is_view("aten.view.default") and is_view("Reshape") and not is_view("Relu")
    assert all(is_view(f"aten.{name}.default") for name in ("type_as", "view_as", "unflatten", "moveaxis", "mT"))


def test_constants_in_the_graph_are_weights(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = encoder(parts=True)
    moved = renamed(model)[0]
    nodes = [helper.make_node("Constant", [], [w.name], value=w) for w in moved.graph.initializer]
    kept = list(moved.graph.node)
    del moved.graph.initializer[:], moved.graph.node[:]
    moved.graph.node.extend([*nodes, *kept])
    (one, mine), (two, theirs) = side(model, feed_of(model), tmp_path), side(moved, feed_of(model), tmp_path)
    found = align(one, two)
    floats = {name for name, x in mine.items() if x.dtype == np.float32}
    assert {pair.tensor for pair in found.pairs} >= floats
    assert all(np.array_equal(mine[p.tensor], theirs[p.other]) for p in found.pairs if p.tensor in floats)
    save_map(tmp_path / "map.json", found)
    assert load_map(tmp_path / "map.json") == found


def test_odd_graphs_align() -> None:
    empty = SideData(AlignGraph((), (), ()), {})
    assert align(empty, empty).pairs == []
    nodes = AlignNode("Split", ("x", "", "nowhere"), ("", "a", "a", "x")), AlignNode("Odd", (), ())
    odd = AlignGraph(nodes, ("x", "x"), ("b",))
    found = align(SideData(odd, {}), SideData(odd, {}))
    assert {pair.tensor for pair in found.pairs} <= {"x", "a"}
