"""Equal blocks of nodes are found, split at layer boundaries, and interrupted by differences."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.big_graph import chain_model, save

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.demo import make_demo
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.surgery.graph.repeats import LEAST_SAVED, find_repeats


def indexed(path: Path, folder: Path) -> GraphIndex:
    with ModelFile(path) as model:
        return build_index(model, folder)


def test_a_chain_of_equal_layers_is_one_repeat(tmp_path: Path) -> None:
    index = indexed(chain_model(tmp_path / "chain.onnx", 7 * 30 + 3), tmp_path / "index")
    (found,) = index.repeats()
    assert (found.start, found.period, found.count, found.end) == (0, 7, 30, 210)


def test_blocks_of_a_transformer_start_at_its_layers(tmp_path: Path) -> None:
    index = indexed(make_demo(tmp_path).fp32, tmp_path / "index")
    (found,) = index.repeats()
    assert found.count == 8
    for block in range(found.count):
        first = found.start + block * found.period
        names = [index.node_name(node) for node in range(first, first + found.period)]
        assert all(name.startswith(f"/encoder/layer.{block}/") for name in names)
        assert not index.node_name(first - 1).startswith(f"/encoder/layer.{block}/")


def test_a_layer_that_differs_is_in_no_block(tmp_path: Path) -> None:
    from onnx import ModelProto

    path = chain_model(tmp_path / "chain.onnx", 7 * 20)
    model = ModelProto.FromString(path.read_bytes())
    model.graph.node[7 * 8 + 3].op_type = "Abs"
    index = indexed(save(path, model.graph), tmp_path / "index")
    found = index.repeats()
    assert not [r for r in found if r.start <= 7 * 8 + 3 < r.end]
    assert sum(repeat.count for repeat in found) >= 18


@given(st.lists(st.integers(0, 3), max_size=80))
def test_every_repeat_repeats_and_none_overlap(kinds: list[int]) -> None:
    tokens = np.array(kinds, np.int64)
    live = np.ones(len(kinds) + 1, np.int64)
    found = find_repeats(tokens, lambda place: f"layer.{place}", live)
    at = 0
    for repeat in found:
        assert repeat.start >= at and repeat.count >= 2 and repeat.period * (repeat.count - 1) >= LEAST_SAVED
        blocks = tokens[repeat.start : repeat.end].reshape(repeat.count, repeat.period)
        assert (blocks == blocks[0]).all()
        at = repeat.end
    assert at <= len(kinds)


@pytest.mark.parametrize("period", [2, 5, 9])
def test_the_smallest_period_is_found(period: int) -> None:
    tokens = np.tile(np.arange(period), 12)
    (found,) = find_repeats(tokens, lambda place: "", np.ones(tokens.size + 1, np.int64))
    assert (found.period, found.count) == (period, 12)
