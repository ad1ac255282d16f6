"""Folded blocks as rows: every node has its row, heads open and fold, and the text says what they stand for."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.big_graph import chain_model

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.repeats import Repeat
from layerwise._tool.tui.presenters.graph_rows import columns, fold_row
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE, plain, width
from layerwise._tool.tui.state.folding import Folding
from layerwise._tool.tui.state.graph import NodeRows
from layerwise._tool.tui.state.session import NodeError, Session

repeats = st.lists(st.tuples(st.integers(0, 3), st.integers(2, 4), st.integers(2, 4)), max_size=3)


@pytest.fixture
def indexed_chain(tmp_path: Path) -> GraphIndex:
    """Ten equal layers of seven nodes."""
    with ModelFile(chain_model(tmp_path / "chain.onnx", 70)) as model:
        return build_index(model, tmp_path / "index")


@given(repeats, st.lists(st.integers(0, 60), max_size=6), st.integers(0, 3))
def test_every_node_is_in_exactly_one_row(groups: list[tuple[int, int, int]], turned: list[int], tail: int) -> None:
    found, at = [], 0
    for gap, period, count in groups:
        found.append(Repeat(at + gap, period, count))
        at = found[-1].end
    folding = Folding()
    folding.on = True
    folding.lay(np.arange(at + tail, dtype=np.int32), found)
    for row in turned:
        if len(folding):
            folding.turn(row % len(folding))
    stood_for: list[int] = []
    for row in range(len(folding)):
        head = folding.head_at(row)
        if head is None:
            stood_for.append(folding.place_at(row))
        elif not head.opened:
            stood_for += range(head.first, head.first + head.size * head.count)
    assert stood_for == list(range(at + tail))
    for place in range(at + tail):
        row = folding.row_of(place)
        head = folding.head_at(row)
        assert folding.place_at(row) == place if head is None else head.first <= place and not head.opened
        folding.reveal(place)
        assert folding.head_at(folding.row_of(place)) is None


def test_a_repeat_opens_to_blocks_and_a_block_to_nodes(indexed_chain: GraphIndex) -> None:
    rows = NodeRows(indexed_chain)
    assert rows.fold(True) == 1 and len(rows) == 1
    assert rows.turn(0) == 0 and len(rows) == 1 + 10
    assert rows.turn(3) == 3 and len(rows) == 1 + 10 + 7
    assert [rows.node_at(row) for row in range(3, 8)] == [14, 14, 15, 16, 17]
    assert rows.nodes_at(3) == list(range(14, 21)) and rows.row_of(16) == 6
    assert rows.turn(6) == 3 and len(rows) == 1 + 10
    rows.search("op:tanh")
    assert len(rows) == 10 and rows.head_at(0) is None
    rows.search("")
    rows.fold(False)
    assert len(rows) == 70


def test_what_a_folded_row_says(indexed_chain: GraphIndex) -> None:
    rows, session = NodeRows(indexed_chain), Session(None)
    rows.fold(True)
    session.errors = {9: NodeError(0.5, False), 20: NodeError(0.7, True)}
    for cells, size in ((76, "7 nodes each"), (110, "7 nodes each")):
        at = columns(cells, 70, True)
        head = rows.head_at(0)
        assert head is not None
        line = fold_row(indexed_chain, rows.nodes_at(0), head, at, session, Names(UNICODE), UNICODE)
        assert "×10" in plain(line) and "/encoder/layer.0 … 9 " in plain(line) and " 0.5 ✗" in plain(line)
        assert size in plain(line) and width(line) == cells
    narrow = fold_row(indexed_chain, range(70), head, columns(55, 70, True), session, Names(UNICODE), UNICODE)
    assert "0 … 9 7 nodes each" in plain(narrow) and width(narrow) == 55
    rows.turn(0)
    block = rows.head_at(3)
    assert block is not None
    text = plain(
        fold_row(indexed_chain, rows.nodes_at(3), block, columns(76, 70, False), session, Names(UNICODE), UNICODE)
    )
    assert "/encoder/layer.2" in text and "layer.3" not in text
