"""A map of tensors is read as it was written; a broken one, or one of other models, is refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Layout, Unpaired
from layerwise._tool.debugtools.align.file import Fitted, by_hand, fitting_map, load_map, save_map
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode

PAIRS = [
    AlignedPair("a", "x", "certain", ("value", "structure"), Layout((2, 3), (1, 0), (6,)), 1e-7),
    AlignedPair("b", "y", "certain", ("hand",)),
]
SAVED = Alignment(PAIRS, [Unpaired("c", 0, "y", 0.5)], ("one", "two"))
GRAPHS = (
    AlignGraph((AlignNode("Relu", ("a",), ("b",)), AlignNode("Relu", ("b",), ("c",))), ("a",), ("c",)),
    AlignGraph((AlignNode("Relu", ("x",), ("y",)),), ("x",), ("y",)),
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    save_map(tmp_path / "map.json", SAVED)
    assert load_map(tmp_path / "map.json") == SAVED
    assert by_hand(SAVED) == PAIRS[1:]


def changed(**fields: Any) -> dict[str, Any]:
    pair = {"tensor": "a", "other": "x", "confidence": "certain", "reasons": ["value"]}
    return {"layerwise": "alignment", "version": 1, "pairs": [pair | fields]}


BROKEN: dict[str, Any] = {
    "not JSON": "{",
    "not UTF-8": b"\xff\xfe",
    "deep": "[" * 100_000,
    "nothing": {},
    "another file": {"layerwise": "history", "version": 1, "pairs": []},
    "another version": {"layerwise": "alignment", "version": 2, "pairs": []},
    "an unknown field": changed() | {"pair": []},
    "an unknown field of a pair": changed(layuot={}),
    "no name": changed(other=""),
    "no reason": changed(reasons=[]),
    "an unknown reason": changed(reasons=["guess"]),
    "a distance below zero": changed(distance=-1.0),
    "a distance that is none": json.dumps(changed(distance=1.0)).replace("1.0", "1e999"),
    "an axis twice": changed(layout={"permutation": [0, 0]}),
    "no axis": changed(layout={"permutation": [3, 4]}),
    "a size below zero": changed(layout={"after": [-1, 4]}),
    "other axes": changed(layout={"before": [2, 2, 2], "permutation": [1, 0]}),
    "twice": changed() | {"pairs": changed()["pairs"] * 2},
    "an escape sequence": changed(tensor="\x1b[31m") | {"pairs": changed(tensor="\x1b[31m")["pairs"] * 2},
    "a third side": changed() | {"unpaired": [{"tensor": "a", "side": 2}]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_map_is_refused(name: str, tmp_path: Path) -> None:
    content = BROKEN[name]
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content)).encode()
    )
    (tmp_path / "map.json").write_bytes(data)
    with pytest.raises(BadFile) as caught:
        load_map(tmp_path / "map.json")
    assert "\x1b" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        load_map(tmp_path / "none.json")


def test_a_map_holds_for_the_models_it_was_made_for() -> None:
    path = Path("map.json")
    assert fitting_map(path, SAVED, GRAPHS, ("one", "two")) == Fitted(SAVED)
    gone = AlignedPair("b", "z", "certain", ("hand",))
    with pytest.raises(UsageError, match="no tensor 'z'"):
        fitting_map(path, Alignment([gone], [], SAVED.models), GRAPHS, ("one", "two"))


def test_of_other_models_corrections_are_kept_and_what_is_gone_is_told() -> None:
    path, models, gone = Path("map.json"), ("one", "another"), AlignedPair("b", "z", "certain", ("hand",))
    automatic = [pair for pair in PAIRS if not {"hand", "name"} & set(pair.reasons)]
    with pytest.raises(UsageError, match="other models"):
        fitting_map(path, Alignment(automatic, [], SAVED.models), GRAPHS, models)
    hand = Alignment(PAIRS[1:], SAVED.unpaired, SAVED.models)
    assert fitting_map(path, hand, GRAPHS, models) == Fitted(Alignment(PAIRS[1:], [], models))
    found = fitting_map(path, Alignment([*PAIRS, gone], SAVED.unpaired, SAVED.models), GRAPHS, models)
    assert found.anew and found.dropped == ["b = z"]
    assert found.alignment.pairs == [pair for pair in PAIRS if "hand" in pair.reasons]
    with pytest.raises(UsageError, match="none of its tensors"):
        fitting_map(path, Alignment([gone], [], SAVED.models), GRAPHS, models)
