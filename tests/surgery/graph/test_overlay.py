"""An overlay of an edited graph agrees with an index built from the edited model, and with the difference of states."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.big_graph import chain_model
from support.graphs import random_model
from support.views import reached

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import Edit
from layerwise._tool.surgery.edits.attributes import RenameNode, RenameTensor
from layerwise._tool.surgery.edits.ends import MarkOutputs
from layerwise._tool.surgery.edits.nodes import DeleteNodes, InsertNode, ReplaceNode
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.delta import affected, delta
from layerwise._tool.surgery.graph.numbering import Numbering
from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.model.structure import Structure


def opened(path: Path, folder: Path) -> Numbering:
    with ModelFile(path) as file:
        return Numbering(build_index(file, folder, shape_inference=False), Structure.open(file))


def edit(structure: Structure, kind: int, place: int, serial: int) -> Structure:
    """One of several edits of some node; what does not fit changes nothing."""
    node = structure.nodes[place % len(structure.nodes)]
    label, tensor = structure.label(node), next(iter(node.output))
    made: list[Edit] = [
        DeleteNodes(nodes=(label,)), InsertNode(tensor=tensor, op="Relu"), ReplaceNode(node=label, op="Abs"),
        RenameNode(node=label, to=f"renamed{serial}"), RenameTensor(tensor=tensor, to=f"tensor{serial}"),
        MarkOutputs(tensors=(tensor,)),
    ]  # fmt: skip
    try:
        return made[kind].apply(structure)
    except LayerwiseError:
        return structure


Facts = tuple[str, str, tuple[str, ...], tuple[str, ...], frozenset[str], frozenset[str], tuple[tuple[str, str], ...]]


def facts(graph: GraphIndex) -> set[Facts]:
    """Return all main graph nodes with their surroundings, by names."""

    def label(node: int) -> str:
        return ",".join(names(graph.node_outputs(node)))

    def names(tensors: list[int]) -> tuple[str, ...]:
        return tuple("" if tensor < 0 else graph.tensor_name(tensor) for tensor in tensors)

    return {
        (
            graph.node_name(node), graph.node_op(node), names(graph.node_inputs(node)), names(graph.node_outputs(node)),
            frozenset(label(parent) for parent in graph.parents(node)),
            frozenset(label(child) for child in graph.children(node) if graph.node_scope(child) == 0),
            tuple(graph.attributes(node)),
        )
        for node in map(int, graph.order) if graph.node_scope(node) == 0
    }  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 50), edits=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=8))
def test_an_overlay_agrees_with_an_index_of_the_edited_model(
    seed: int, edits: list[tuple[int, int]], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(random_model(seed), path)
    numbering = opened(path, tmp_path / "index")
    state = numbering.structure
    for serial, (kind, place) in enumerate(edits):
        state = edit(state, kind, place, serial)
    overlay = Overlay(numbering, state)
    saved = tmp_path / "edited.onnx"
    saved.write_bytes(state.proto().SerializeToString())
    with ModelFile(saved) as file:
        fresh = build_index(file, tmp_path / "fresh", shape_inference=False)
    assert facts(overlay) == facts(fresh)
    assert overlay.meta["outputs"] == fresh.meta["outputs"] and len(overlay.order) == len(set(overlay.order.tolist()))
    for query in ("relu", "op:add", "name:n1", "!op:relu"):
        mine = {overlay.node_outputs(int(node))[0] for node in overlay.search(query)}
        theirs = {fresh.node_outputs(int(node))[0] for node in fresh.search(query) if not fresh.node_scope(int(node))}
        assert {overlay.tensor_name(t) for t in mine} >= {fresh.tensor_name(t) for t in theirs}
    back = Overlay(numbering, numbering.structure)
    assert not back.own and not back.gone and delta(back, Overlay(numbering, numbering.structure)).empty


def test_the_difference_of_two_states_is_complete(tmp_path: Path) -> None:
    numbering = opened(chain_model(tmp_path / "chain.onnx", 21), tmp_path / "index")
    before = Overlay(numbering, numbering.structure)
    name = "/encoder/layer.1/Relu"
    deleted = Overlay(numbering, DeleteNodes(nodes=(name,)).apply(numbering.structure))
    found = delta(before, deleted)
    assert [before.node_name(node) for node in found.removed] == [name] and not found.added
    assert [before.node_op(node) for node in found.changed] == ["Mul"]
    assert affected(before, deleted, found) == deleted.state.output_names
    again = delta(deleted, before)
    assert again.added == found.removed and not again.removed
    shown = deleted.with_removed(before, found.removed)
    assert shown.order.tolist() == before.order.tolist()


def test_new_nodes_follow_their_inputs_and_keep_their_number(tmp_path: Path) -> None:
    numbering = opened(chain_model(tmp_path / "chain.onnx", 21), tmp_path / "index")
    one = InsertNode(tensor="/encoder/layer.0/Relu_output_0", op="Abs").apply(numbering.structure)
    new = next(iter(Overlay(numbering, one).own.keys() - set(range(21))))
    two = InsertNode(tensor="/encoder/layer.2/Relu_output_0", op="Neg").apply(one)
    overlay = Overlay(numbering, two)
    order = overlay.order.tolist()
    assert overlay.node_op(new) == "Abs" and order.index(new) == order.index(1) + 1
    assert np.count_nonzero(overlay.order >= 21) == 2


def test_blocks_with_a_change_are_not_folded(tmp_path: Path) -> None:
    numbering = opened(chain_model(tmp_path / "chain.onnx", 70), tmp_path / "index")
    overlay = Overlay(numbering, DeleteNodes(nodes=("/encoder/layer.4/Relu",)).apply(numbering.structure))
    inside = [set(overlay.order[repeat.start : repeat.end].tolist()) for repeat in overlay.repeats()]
    assert len(inside) == 2 and not any(nodes & overlay.own.keys() for nodes in inside)


@pytest.mark.parametrize("low", ["Relu", "Sub"])
def test_reach_finds_all_dependent_nodes(tmp_path: Path, low: str) -> None:
    numbering = opened(chain_model(tmp_path / "chain.onnx", 21), tmp_path / "index")
    overlay = Overlay(numbering, ReplaceNode(node=f"/encoder/layer.1/{low}", op="Abs").apply(numbering.structure))
    for node in (0, 8, 11, 20):
        mask = overlay.reach(overlay.children(node))
        assert set(np.flatnonzero(mask).tolist()) == reached(node, numbering.index.children)
