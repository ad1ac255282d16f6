"""Bodies and functions in an overlay agree with an index of the edited model."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.edit_models import nested_model
from support.views import graph_at

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import Edit
from layerwise._tool.surgery.edits.attributes import RenameNode, RenameTensor
from layerwise._tool.surgery.edits.nodes import DeleteNodes, InsertNode, ReplaceNode
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.delta import affected, delta
from layerwise._tool.surgery.graph.numbering import Numbering
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.model.structure import Scope, Structure

THEN, ELSE, TWICE = ("if", "then_branch"), ("if", "else_branch"), ("function", "my:Twice")
DEEP = ("loop", "body", "inner", "then_branch")
SCOPES: tuple[Scope, ...] = ((), THEN, ELSE, TWICE, ("loop", "body"), DEEP)


def opened(path: Path, folder: Path) -> Numbering:
    with ModelFile(path) as file:
        return Numbering(build_index(file, folder, shape_inference=False), Structure.open(file))


def fresh(state: Structure, folder: Path) -> GraphIndex:
    """Return the index of a state, saved and read again."""
    saved = folder / "edited.onnx"
    saved.write_bytes(state.proto().SerializeToString())
    with ModelFile(saved) as file:
        return build_index(file, folder / "fresh", shape_inference=False)


def facts(graph: GraphIndex) -> dict[tuple[str, str], object]:
    """Return all nodes by their outputs and scope, with their surroundings."""

    def where(scope: int) -> str:
        found = graph.meta["scopes"][scope]
        if found["kind"] == "function":
            return f"function {found['name']}"
        if scope == 0:
            return ""
        owner = found["owner"]
        return f"{where(graph.node_scope(owner))}/{label(owner)}.{found['attribute']}"

    def label(node: int) -> str:
        return graph.tensor_name(graph.node_outputs(node)[0])

    def tensor(number: int) -> object:
        if number < 0:
            return None
        kind = graph.tensor_kind(number)
        return graph.tensor_name(number), where(graph.tensor_scope(number)), kind, graph.is_output(number)

    def around(nodes: list[int]) -> frozenset[str]:
        return frozenset(f"{where(graph.node_scope(node))}:{label(node)}" for node in nodes)

    return {
        (where(graph.node_scope(node)), label(node)): (
            graph.node_name(node), graph.node_op(node), tuple(map(tensor, graph.node_inputs(node))),
            tuple(map(tensor, graph.node_outputs(node))), frozenset(map(tensor, graph.node_captures(node))),
            around(graph.parents(node)), around(graph.children(node)),
            around(graph.scope_nodes(graph.node_scope(node)).tolist()), tuple(graph.attributes(node)),
            len(graph.bodies(node)),
        )
        for node in graph.order.tolist()
    }  # fmt: skip


def edit(state: Structure, scope: Scope, kind: int, place: int, serial: int) -> Structure:
    """One of several edits of some node of a scope; what does not fit changes nothing."""
    try:
        graph = graph_at(state, scope)
        node = graph.nodes[place % len(graph.nodes)]
        label, tensor = graph.label(node), node.output[0]
        made: list[Edit] = [
            DeleteNodes(nodes=(label,), scope=scope), InsertNode(tensor=tensor, op="Relu", scope=scope),
            ReplaceNode(node=label, op="Abs", inputs=(node.input[0],), scope=scope),
            RenameNode(node=label, to=f"renamed{serial}", scope=scope),
            RenameTensor(tensor=tensor, to=f"tensor{serial}", scope=scope),
        ]  # fmt: skip
        return made[kind].apply(state)
    except (LayerwiseError, ZeroDivisionError):
        return state


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 14)), max_size=6))
def test_inner_graphs_agree_with_an_index_of_the_edited_model(
    edits: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    numbering = opened(nested_model(tmp_path / "nested.onnx"), tmp_path / "index")
    states = [numbering.structure]
    for serial, (scope, kind, place) in enumerate(edits):
        states.append(edit(states[-1], SCOPES[scope], kind, place, serial))
    overlays = [Overlay(numbering, state) for state in states]
    assert facts(overlays[-1]) == facts(fresh(states[-1], tmp_path))
    assert set(overlays[-1].order.tolist()) == {n for n in range(overlays[-1].n_nodes) if overlays[-1].has(n)}
    for before, after in pairwise(overlays):
        found = delta(before, after)
        shown = after.with_removed(before, found.removed)
        assert {*before.order.tolist(), *after.order.tolist()} == set(shown.order.tolist())
        assert len(facts(shown)) <= len(shown.order)
    assert facts(Overlay(numbering, numbering.structure)) == facts(numbering.index)


@pytest.mark.parametrize("scope", [THEN, TWICE, DEEP])
def test_the_difference_covers_edits_in_inner_graphs(tmp_path: Path, scope: Scope) -> None:
    numbering = opened(nested_model(tmp_path / "nested.onnx"), tmp_path / "index")
    before = Overlay(numbering, numbering.structure)
    inside = graph_at(numbering.structure, scope)
    made = InsertNode(tensor=inside.nodes[0].output[0], op="Neg", scope=scope).apply(numbering.structure)
    after = Overlay(numbering, made)
    found = delta(before, after)
    assert [after.node_op(node) for node in found.added] == ["Neg"] and not found.removed
    order = after.order.tolist()
    maker = after.producer(after.node_inputs(found.added[0])[0])
    assert order.index(found.added[0]) == order.index(maker) + 1
    assert set(affected(before, after, found)) == {THEN: {"y", "looped"}, TWICE: {"z"}, DEEP: {"looped"}}[scope]
    back = delta(after, Overlay(numbering, numbering.structure))
    assert [after.node_op(node) for node in back.removed] == ["Neg"]


def test_deleting_a_node_with_bodies_can_be_undone(tmp_path: Path) -> None:
    numbering = opened(nested_model(tmp_path / "nested.onnx"), tmp_path / "index")
    before = Overlay(numbering, numbering.structure)
    after = Overlay(numbering, DeleteNodes(nodes=("loop",)).apply(numbering.structure))
    found = delta(before, after)
    assert len(found.removed) == 3 + 4 and [after.node_op(node) for node in found.changed] == ["Identity"]
    assert delta(after, before).added == found.removed
