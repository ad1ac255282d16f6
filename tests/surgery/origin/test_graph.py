"""Origins of whole graphs, read from bytes and from protobuf objects."""

from pathlib import Path

import onnx
import pytest
from onnx import helper
from support.exported import note, noted_pair

from layerwise._tool.backends.model.records import read_model
from layerwise._tool.backends.model.wire import put_bytes
from layerwise._tool.surgery.origin.graph import ProtoOrigins, record_origins
from layerwise._tool.surgery.origin.origin import Origin
from layerwise._tool.surgery.origin.tree import InModule, ModuleCount, module_counts, told_counts


def origins(nodes: list[onnx.NodeProto]) -> list[Origin | None]:
    """From the bytes; from objects it has to be the same."""
    data = helper.make_model(helper.make_graph(nodes, "g", [], [])).SerializeToString()
    read = record_origins(data, read_model(data).graph.nodes)
    objects = ProtoOrigins(nodes)
    assert [objects[i] for i in range(len(nodes))] == read
    return read


def paths(nodes: list[onnx.NodeProto]) -> list[tuple[str, ...] | None]:
    return [None if origin is None else origin.modules for origin in origins(nodes)]


def node(op: str, reads: str, makes: str, module: str | None = None, name: str = "") -> onnx.NodeProto:
    made = helper.make_node(op, reads.split(), makes.split(), name)
    return made if module is None else note(made, module, makes)


def test_a_copy_belongs_to_what_made_its_tensor_and_a_constant_to_what_reads_it() -> None:
    found = paths([
        node("Constant", "", "c"), node("MatMul", "x w", "a", "block.0.proj"), node("Cast", "a", "b"),
        node("QuantizeLinear", "b s", "q"), node("DequantizeLinear", "q s", "d"), node("DequantizeLinear", "w8 s", "v"),
        node("Gemm", "d v c", "e", "block.1.proj"),
    ])  # fmt: skip
    first, second = ("block.0", "proj"), ("block.1", "proj")
    assert found == [second, first, first, first, first, second, second]


def test_a_node_between_two_modules_is_in_the_one_that_holds_both_if_that_is_not_the_outermost() -> None:
    def between(before: str, after: str) -> tuple[str, ...] | None:
        return paths([node("Relu", "x", "a", before), node("Mul", "a k", "b"), node("Relu", "b", "c", after)])[1]

    assert between("block.0.proj", "block.0.norm") == ("block.0",)
    assert between("block.0.proj", "block.1.proj") is None
    assert between("", "") == ()
    assert between("", "block.0") is None


def test_one_node_does_not_tell_of_a_whole_graph() -> None:
    far = [node("Relu", f"t{i}", f"t{i + 1}") for i in range(40)]
    assert paths([node("MatMul", "x w", "t0", "block.0.proj"), *far])[1:] == [None] * 40
    assert paths([*far, node("MatMul", "t40 w", "y", "block.0.proj")])[1:-1] == [None] * 39
    both = [node("MatMul", "x w", "t0", "block.0.proj"), *far, node("MatMul", "t40 w", "y", "block.0.norm")]
    assert paths(both)[1:-1] == [("block.0",)] * 40


def test_a_constant_that_many_read_does_not_join_them() -> None:
    nodes = [node("Constant", "", "c")]
    for k in range(3):
        nodes += [node("MatMul", "x w", f"a{k}", f"block.{k}.proj"), node("Mul", f"a{k} c", f"b{k}"),
                  node("Tanh", f"b{k}", f"y{k}", f"block.{k}.proj")]  # fmt: skip
    assert paths(nodes) == [None, *((f"block.{k}", "proj") for k in range(3) for _ in range(3))]


def test_names_tell_where_no_metadata_does_and_the_rest_is_unknown() -> None:
    nodes = [node("MatMul", "x w", "a", name="/enc/fc/MatMul"), node("Add", "a b", "/enc/fc/Add_output_0"),
             node("Relu", "/enc/fc/Add_output_0", "y", name="relu"), node("Relu", "z", "o", name="other")]  # fmt: skip
    assert paths(nodes) == [("enc", "fc"), ("enc", "fc"), ("enc", "fc"), None]
    assert told_counts(origins(nodes)) == {"metadata": 0, "name": 2, "neighbours": 1, "unknown": 1}


def test_metadata_is_read_in_any_order_and_the_last_value_of_a_key_counts() -> None:
    key, first, last = b"pkg.torch.onnx.name_scopes", b"['', 'a', 'n']", b"['', 'b', 'n']"
    entries = [put_bytes(1, key) + put_bytes(2, first), put_bytes(2, last) + put_bytes(9, b"?") + put_bytes(1, key)]
    fields = put_bytes(9, entries[0]) + put_bytes(4, b"Relu") + put_bytes(9, entries[1])
    data = put_bytes(7, put_bytes(1, fields))
    assert record_origins(data, read_model(data).graph.nodes) == [Origin(("b",))]
    assert ProtoOrigins(onnx.load_from_string(data).graph.node)[0] == Origin(("b",))


NOT_TEXT = (b"['', 'a\xff\xfe', 'n']", b"['', '" + b"a" * 200_000 + b"', 'n']", b"\xff" * 200_000)


@pytest.mark.parametrize("scopes", NOT_TEXT)
def test_invalid_text_is_read_alike(scopes: bytes) -> None:
    entry = put_bytes(1, b"pkg.torch.onnx.name_scopes") + put_bytes(2, scopes)
    data = put_bytes(7, put_bytes(1, put_bytes(3, b"/a/n") + put_bytes(9, entry) + put_bytes(4, b"Relu")))
    found = record_origins(data, read_model(data).graph.nodes)
    assert found == [ProtoOrigins(onnx.load_from_string(data).graph.node)[0]]
    assert found[0] is not None


def test_modules_are_counted_with_what_is_in_them(tmp_path: Path) -> None:
    nodes = list(onnx.load(noted_pair(tmp_path)[0]).graph.node)
    counts = module_counts(origins(nodes))
    assert counts[0] == ModuleCount((), "net.Net", 0, 7)
    assert [(".".join(count.path), count.kind, count.own, count.nodes) for count in counts[1:]] == [
        ("block.0", "net.Block", 1, 3), ("block.0.proj", "torch.nn.Linear", 2, 2),
        ("block.1", "net.Block", 2, 4), ("block.1.proj", "torch.nn.Linear", 2, 2),
    ]  # fmt: skip


def test_a_pattern_names_a_module_with_all_in_it() -> None:
    def matches(pattern: str, *path: str) -> bool:
        return InModule(pattern)(Origin(path))

    assert matches("enc.layer.1", "enc", "layer.1", "fc") and not matches("enc.layer.1", "enc", "layer.10")
    assert matches("enc.layer.*.fc", "enc", "layer.1", "fc", "act") and not matches("layer.1", "enc", "layer.1")
    assert not InModule("*")(None)


def test_nodes_of_a_body_are_where_its_owner_is() -> None:
    data = helper.make_model(helper.make_graph([node("Relu", "x", "r")], "then", [], [])).SerializeToString()
    found = record_origins(data, read_model(data).graph.nodes, Origin(("block",), ("Net", "Block"), "cond"))
    assert found == [Origin(("block",), ("Net", "Block"), told="neighbours")]
