"""Rows below their modules, which fold."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.tui.presenters.graph_rows import columns
from layerwise._tool.tui.presenters.module_rows import graph_module_row
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE, plain
from layerwise._tool.tui.state.module_tree import ModuleHead, ModuleTree

PATHS = [("m", "emb"), ("m", "enc", "layer.0"), ("m", "enc", "layer.0", "fc"), ("m", "enc", "layer.1")]
CODES = [0, 0, 1, 2, 2, 1, 3, 3, -1]


def tree(codes: list[int]) -> ModuleTree:
    made = ModuleTree()
    made.lay(PATHS, np.array(codes, np.int32))
    return made


def shown(of: ModuleTree) -> list[str]:
    """`>` is folded, `v` open, a number an item; two spaces for each module around."""
    rows = []
    for row in range(len(of)):
        head = of.head_at(row)
        text = str(of.place_at(row))
        if head is not None:
            name = "none" if head.path is None else ".".join(head.shown)
            text = f"{'v' if head.opened else '>'} {name} {head.count}"
        rows.append("  " * of.depth_at(row) + text)
    return rows


def test_modules_stand_where_their_first_item_would_and_open_one_after_the_other() -> None:
    of = tree(CODES)
    assert shown(of) == ["> m 8", "> none 1"]
    assert of.turn(0) == 0
    assert shown(of) == ["v m 8", "  > emb 2", "  > enc 6", "> none 1"]
    of.turn(2)
    of.turn(3)
    assert shown(of)[2:6] == ["  v enc 6", "    v layer.0 4", "      2", "      > fc 2"]
    assert shown(of)[6:] == ["      5", "    > layer.1 2", "> none 1"]
    assert of.turn(4) == 3 and shown(of)[3] == "    > layer.0 4"


def test_a_module_with_nothing_but_another_has_no_row() -> None:
    assert shown(tree([2, 2, 1])) == ["v m.enc.layer.0 3", "  > fc 2", "  2"]


def test_an_item_is_found_where_it_is_folded_and_opened_to() -> None:
    of = tree(CODES)
    assert [of.row_of(item) for item in (0, 3, 8)] == [0, 0, 1]
    of.reveal(3)
    assert shown(of)[of.row_of(3)].strip() == "3" and of.places_at(of.row_of(3)).tolist() == [3]
    assert sorted(of.places_at(of.row_of_module(("m", "enc"))).tolist()) == [2, 3, 4, 5, 6, 7]


def test_what_is_open_stays_open_when_items_come() -> None:
    of = tree(CODES)
    of.turn(0)
    of.lay(PATHS, np.array([*CODES, 3], np.int32))
    assert shown(of)[:3] == ["v m 9", "  > emb 2", "  > enc 7"]


@given(st.lists(st.integers(-1, len(PATHS) - 1), max_size=12), st.lists(st.integers(0, 20), max_size=8))
def test_every_item_is_in_one_row_whatever_is_open(codes: list[int], turns: list[int]) -> None:
    of = tree(codes)
    for row in turns:
        if row < len(of):
            of.turn(row)
    for item in range(len(codes)):
        of.row_of(item)
    own = [row for row in range(len(of)) if of.head_at(row) is None]
    closed = [row for row in range(len(of)) if (head := of.head_at(row)) and not head.opened]
    assert sorted(item for row in (*own, *closed) for item in of.places_at(row).tolist()) == list(range(len(codes)))
    for item in range(len(codes)):
        assert item in of.places_at(of.row_of(item)).tolist()


def test_no_items_make_no_rows() -> None:
    assert len(tree([])) == 0
    with pytest.raises(IndexError):
        tree([]).place_at(0)


def test_modules_whose_names_differ_in_their_middle_are_told_apart() -> None:
    names, at = Names(UNICODE), columns(60, 99, False)
    heads = [ModuleHead((), (f"encoder_{'x' * 40}_{k}_{'y' * 40}",), 1, 3, False) for k in range(3)]
    rows = names.told(lambda: [graph_module_row(head, 0, [], at, 60, names, UNICODE) for head in heads])
    assert [re.findall("\\d", plain(row).split("nodes")[0])[1] for row in rows] == ["0", "1", "2"]
