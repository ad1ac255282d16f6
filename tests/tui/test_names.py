"""Names in columns: shortened, and never two different ones alike."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from layerwise._tool.tui.presenters.names import Names, shorten
from layerwise._tool.tui.presenters.text import ASCII, UNICODE

PARTS = st.sampled_from(
    ["encoder", "layer.1", "layer.11", "layer.2", "self", "query", "key", "MatMul", "Add_1", "長い名前"]
)
PATHS = st.lists(PARTS, min_size=1, max_size=7).map(lambda parts: "/" + "/".join(parts))
TENSORS = st.builds(str.__add__, PATHS, st.sampled_from(["", "_output_0", "_output_1", "_output_0__to_float16"]))
COUNTED = st.builds("onnx::{}_{}".format, st.sampled_from(["MatMul", "Add"]), st.integers(0, 10**6))
ANYTHING = st.text(max_size=40)
NAMES = st.lists(TENSORS | COUNTED | ANYTHING, max_size=60)


@given(NAMES, st.integers(8, 60), st.sampled_from([UNICODE.ellipsis, ASCII.ellipsis]))
@settings(max_examples=150)
def test_different_names_are_never_shown_equal(names: list[str], cells: int, ellipsis: str) -> None:
    texts = shorten({name: name for name in names}, cells, ellipsis)
    assert texts.keys() == set(names)
    assert len({text.strip() for text in texts.values()}) == len(texts)
    assert max(map(cell_len, texts.values()), default=0) <= cells


@given(NAMES, NAMES, st.integers(8, 40))
@settings(max_examples=60)
def test_nor_are_those_that_come_later(first: list[str], later: list[str], cells: int) -> None:
    names = Names(UNICODE)
    names.look(lambda: [names.text(name, cells, "tensor") for name in first])
    texts = {name: names.text(name, cells, "tensor") for name in [*later, *first]}
    assert len({text.strip() for text in texts.values()}) == len(texts)
    assert {cell_len(text) for text in texts.values()} <= {cells}


@pytest.mark.parametrize("few", [("babbbaba", "bbab", "abbbabaaababb"), ("", "/", "長い名前")])
def test_columns_of_a_few_cells_are_filled_too(few: Sequence[str]) -> None:
    for cells in range(8):
        texts = shorten({name: name for name in few}, cells)
        assert texts.keys() == set(few)
        names = Names(UNICODE)
        assert {cell_len(names.text(name, cells)) for name in few} == {cells}


def test_what_tells_neighbours_apart_stays() -> None:
    names = [f"/encoder/layer.{layer}/attention/self/{role}/MatMul" for layer in (3, 4) for role in ("query", "key")]
    texts = [text.strip() for text in shorten({name: name for name in names}, 16).values()]
    assert all("3" in text for text in texts[:2]) and all("4" in text for text in texts[2:])
    assert all(text.endswith("y/MatMul") for text in texts)


def test_a_tensor_goes_by_its_node_s_name_unless_that_is_another_tensor_s() -> None:
    names = Names(UNICODE)
    both = ["/a/Relu_output_0", "/b/Add_output_0", "/b/Add"]
    names.look(lambda: [names.text(name, 20, "tensor") for name in both])
    assert [names.text(name, 20, "tensor").strip() for name in both] == ["/a/Relu", "/b/Add_output_0", "/b/Add"]


def test_what_is_said_in_words_keeps_its_start_unless_its_end_tells_it_apart() -> None:
    names = Names(UNICODE)
    titles = [f"encoder.onnx: cpu against cuda, {end}" for end in ("every tensor", "outputs")] + [
        "locate encoder.onnx, cpu"
    ]
    names.look(lambda: [names.text(title, 20, "title") for title in titles])
    first, second, third = (names.text(title, 20, "title") for title in titles)
    assert third == "locate encoder.onnx…" and first.endswith("tensor") and second.endswith("outputs")


def test_names_that_look_equal_are_numbered() -> None:
    texts = shorten({name: name for name in ("a\n", "a\\x0a", "b", "b ")}, 12)
    assert len({text.strip() for text in texts.values()}) == 4


def test_names_that_differ_in_spaces_are_shown_with_them() -> None:
    names = Names(UNICODE)
    few = [" ", "  ", "a", "a ", " a", "a b", "a\u00a0b"]
    names.look(lambda: [names.text(name, 12) for name in few])
    texts = [names.text(name, 12).rstrip() for name in few]
    assert texts == ["\\x20", "\\x20\\x20", "a", "a\\x20", "\\x20a", "a b", "a\\xa0b"]
