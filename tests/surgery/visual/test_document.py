"""The graph of a page: every node and every read is drawn, nothing overlaps, equal layers fold."""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.models import from_text
from support.sample_models import if_model, node_test_models

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.demo import demo_model
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.visual.layers import LONGEST, Edge, draw
from layerwise._tool.surgery.visual.levels import SIZES, Item
from layerwise._tool.surgery.visual.page import document

Json = dict[str, Any]


def indexed(model: onnx.ModelProto | Path, folder: Path) -> GraphIndex:
    path = model if isinstance(model, Path) else folder / "m.onnx"
    if not isinstance(model, Path):
        path.write_bytes(model.SerializeToString())
    with ModelFile(path) as file:
        return build_index(file, folder / "index", shape_inference=False)


def positions(level: Json, base: int = 0) -> Iterator[int]:
    """Every node of a level and of all blocks in it."""
    for kind, ref in zip(level["kind"], level["ref"], strict=True):
        if kind == Item.NODE:
            yield base + ref
        elif kind == Item.RUN:
            run = level["runs"][ref]
            for k in range(run["count"]):
                yield from positions(run["level"], base + run["start"] + k * run["period"])


def levels(level: Json) -> Iterator[Json]:
    yield level
    for run in level["runs"]:
        yield from levels(run["level"])


def joined(level: Json) -> set[tuple[int, int]]:
    """Pairs of items that a level draws a line between, or names as far."""
    pairs, at = set(zip(level["tags"][::2], level["tags"][1::2], strict=True)), 0
    while at < len(level["lines"]):
        source, target = level["lines"][at : at + 2]
        bends = level["row"][target] - level["row"][source] - 1
        assert bends >= 0
        pairs.add((source, target))
        at += 2 + bends
    assert at == len(level["lines"])
    return pairs


def assert_sound(index: GraphIndex, made: Json) -> None:
    """Every node once; no two items of a row overlap; every read is drawn on the level where its ends part."""
    members: list[list[int]] = [[] for _ in made["scopes"]]
    for node, scope in enumerate(made["nodes"]["scope"]):
        members[scope].append(node)
    for scope, nodes in zip(made["scopes"], members, strict=True):
        assert sorted(positions(scope["level"])) == list(range(len(nodes)))
        for level in levels(scope["level"]):
            assert_rows_clear(level)
        assert_reads_drawn(index, scope["level"], nodes, 0)


def assert_rows_clear(level: Json) -> None:
    rows: dict[int, list[tuple[int, int]]] = {}
    for kind, row, x in zip(level["kind"], level["row"], level["x"], strict=True):
        rows.setdefault(row, []).append((x, SIZES[Item(kind)][0]))
    for items in rows.values():
        for (x, width), (other, wide) in pairwise(sorted(items)):
            assert other - x >= (width + wide) / 2 + 10
    assert sorted(rows) == list(range(len(rows)))
    assert all(x - SIZES[Item(kind)][0] / 2 + 1 >= 0 and x + SIZES[Item(kind)][0] / 2 <= level["width"] + 1
               for kind, x in zip(level["kind"], level["x"], strict=True))  # fmt: skip


def assert_reads_drawn(index: GraphIndex, level: Json, nodes: list[int], base: int) -> None:
    owner: dict[int, int] = {}
    for item, (kind, ref) in enumerate(zip(level["kind"], level["ref"], strict=True)):
        if kind == Item.NODE:
            owner[nodes[base + ref]] = item
        elif kind == Item.RUN:
            run = level["runs"][ref]
            owner |= {nodes[base + run["start"] + i]: item for i in range(run["period"] * run["count"])}
            for k in range(run["count"]):
                assert_reads_drawn(index, run["level"], nodes, base + run["start"] + k * run["period"])
    drawn = joined(level)
    for node, item in owner.items():
        for parent in index.parents(node):
            if parent in owner and owner[parent] != item:
                assert (owner[parent], item) in drawn


def random_model(seed: int, size: int) -> onnx.ModelProto:
    """A graph with far edges, several outputs per node, constants and blocks that repeat."""
    chance = random.Random(seed)
    names, nodes = ["x"], []
    block = [(chance.choice(("Relu", "Add", "Split")), chance.randrange(1, 4)) for _ in range(chance.randrange(1, 6))]
    for i in range(size):
        op, back = block[i % len(block)] if chance.random() < 0.9 else ("Constant", 1)
        far = chance.choice(names) if chance.random() < 0.1 else names[-min(back, len(names))]
        reads = [] if op == "Constant" else [names[-1], far, "w"] if op == "Add" else [far]
        made = [f"t{i}", f"u{i}"] if op == "Split" else [f"t{i}"]
        nodes.append(helper.make_node(op, reads, made, f"/block{i // len(block)}/{op}{i % len(block)}"))
        names += made
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", names[-1])]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    return helper.make_model(helper.make_graph(nodes, "random", values[:1], values[1:], [weight]))


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 150))
def test_any_graph_is_laid_out_correctly(seed: int, size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    index = indexed(random_model(seed, size), tmp_path_factory.mktemp("random"))
    assert_sound(index, document(index, "m"))


def test_onnx_node_test_models_are_laid_out_correctly(tmp_path: Path) -> None:
    for number, (_, data) in enumerate(node_test_models()[::9]):
        folder = tmp_path / str(number)
        folder.mkdir()
        index = indexed(onnx.load_from_string(data), folder)
        assert_sound(index, document(index, "m"))


def test_equal_layers_share_one_item_and_level(tmp_path: Path) -> None:
    index = indexed(demo_model(), tmp_path)
    made = document(index, "demo")
    runs = made["scopes"][0]["level"]["runs"]
    assert [run["count"] for run in runs] == [8]
    first = runs[0]["start"]
    for k in range(8):
        place = first + k * runs[0]["period"]
        assert index.node_name(place).startswith(f"/encoder/layer.{k}/")
        assert index.node_name(place + runs[0]["period"] - 1).startswith(f"/encoder/layer.{k}/")
    assert len(made["scopes"][0]["level"]["kind"]) < 30
    assert_sound(index, made)


def test_blocks_with_different_links_are_not_folded_together(tmp_path: Path) -> None:
    lines = []
    for i in range(4):
        first, other = "x" if i == 0 else f"d{i - 1}", "a" if i == 2 else "b"
        lines += [f"a{i} = Relu({first})", f"b{i} = Tanh(a{i})", f"c{i} = Exp({other}{i})", f"d{i} = Add(b{i}, c{i})"]
    model = from_text(f"main (float[4] x) => (float[4] d3) {{ {chr(10).join(lines)} }}")
    index = indexed(model, tmp_path)
    made = document(index, "m")
    assert all(run["start"] + run["period"] * run["count"] <= 8 for run in made["scopes"][0]["level"]["runs"])
    assert_sound(index, made)


def test_bodies_and_functions_have_their_own_levels(tmp_path: Path) -> None:
    index = indexed(if_model(), tmp_path)
    made = document(index, "m")
    assert sorted(scope["attribute"] for scope in made["scopes"]) == ["", "else_branch", "then_branch"]
    assert_sound(index, made)
    text = '<ir_version: 10, opset_import: ["": 21, "d": 1]>\nmain (float[4] x) => (float[4] y) { y = d.twice(x) }\n'
    function = '<opset_import: ["": 21], domain: "d">\ntwice (a) => (b) { b = Add(a, a) }'
    folder = tmp_path / "function"
    folder.mkdir()
    called = document(indexed(onnx.parser.parse_model(text + function), folder), "m")
    assert [(scope["kind"], scope["name"]) for scope in called["scopes"]] == [("main", "main"), ("function", "d:twice")]


@pytest.mark.parametrize(
    "body",
    [
        "main (float[4] x) => (float[4] x) { }",
        "main () => (float[1] y) { y = Constant <value_float: float = 1.0> () }",
        "main (float[4] x, float[4] unread) => (float[4] y, float[4] x) { y = Relu(x) }",
        "main (float[4] x) => (float[4] y) { y = Add(x, nowhere) }",
        "main (float[4] x) => (float[4] b) { a = Add(x, b)\nb = Relu(a) }",
    ],
)
def test_unusual_and_broken_graphs_are_drawn(body: str, tmp_path: Path) -> None:
    made = document(indexed(from_text(body), tmp_path), "m")
    level = made["scopes"][0]["level"]
    assert sorted(positions(level)) == list(range(len(made["nodes"]["name"])))
    assert_rows_clear(level)
    joined(level)


@settings(max_examples=30)
@given(data=st.data(), count=st.integers(1, 40))
def test_rows_do_not_overlap_and_edges_go_down(data: st.DataObject, count: int) -> None:
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] < p[1])
    pairs = data.draw(st.lists(pair, max_size=80, unique=True)) if count > 1 else []
    widths = data.draw(st.lists(st.floats(10, 300), min_size=count, max_size=count))
    late = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    made = draw(widths, [Edge(a, b, a) for a, b in pairs], late, 12.0)
    for (a, b), bends in zip(pairs, made.bends, strict=True):
        assert made.row[a] < made.row[b]
        assert (bends is None) == (made.row[b] - made.row[a] > LONGEST)
        assert bends is None or len(bends) == made.row[b] - made.row[a] - 1
    for row in set(made.row):
        items = sorted((made.x[i], widths[i]) for i in range(count) if made.row[i] == row)
        assert all(y - x >= (v + w) / 2 + 10 for (x, v), (y, w) in pairwise(items))


def test_a_chain_is_a_straight_line() -> None:
    made = draw([100.0] * 50, [Edge(i, i + 1, i) for i in range(49)], [False] * 50, 12.0)
    assert made.row == list(range(50))
    assert len({round(x, 6) for x in made.x}) == 1


def test_a_constant_is_directly_above_its_reader() -> None:
    edges = [*(Edge(i, i + 1, i) for i in range(5)), Edge(6, 7, 6), Edge(7, 5, 7)]
    order = [0, 1, 2, 3, 4, 7, 5, 6]  # items in topological order: the constants 5 and 6 come before 7
    moved = [Edge(order[e.source], order[e.target], e.tensor) for e in edges]
    made = draw([50.0] * 8, moved, [False] + [True] * 7, 12.0)
    assert made.row == [0, 1, 2, 3, 4, 3, 4, 5]
