"""An alignment that a person corrected stays that person's: saved, used again, carried over to changed models."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import onnx
import pytest
from support.aligning import encoder, renamed
from support.comparing import ORT, Compared, run_compare

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.file import by_hand, load_map, save_map
from layerwise._tool.debugtools.compare.aligning.by_hand import load_by_hand, save_by_hand
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

COUNT = 200


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mine.onnx and theirs.onnx: one encoder of five layers under names that have nothing in common."""
    return written(tmp_path_factory.mktemp("corrected"), 5)


def written(folder: Path, layers: int) -> Path:
    mine = encoder(parts=True, layers=layers)
    onnx.save(mine, folder / "mine.onnx")
    onnx.save(renamed(mine)[0], folder / "theirs.onnx")
    return folder


def compared(folder: Path, **fields: Any) -> Compared:
    runners = [ORT, msgspec.structs.replace(ORT, model=str(folder / "theirs.onnx"))]
    spec = {"model": str(folder / "mine.onnx"), "runners": runners, "marks": MarkSpec(names=["t3_ReduceMean"])} | fields
    return run_compare(CompareSpec(**spec))


def swapped(found: Alignment) -> dict[str, str]:
    """Two hundred corrections: counterparts of one shape change places, so that each is another one than was found."""
    pairs = [pair for pair in found.pairs if "value" in pair.reasons and pair.layout is None]
    return {
        pair.tensor: other.other
        for one, two in zip(pairs[0::2], pairs[1::2], strict=False)
        for pair, other in ((one, two), (two, one))
    }


def hand(path: Path) -> dict[str, str]:
    return {pair.tensor: pair.other for pair in by_hand(load_map(path))}


def with_a_new_name(folder: Path, made: str, into: Path) -> None:
    """Copies both models; in the second a tensor has another name."""
    into.mkdir()
    (into / "mine.onnx").write_bytes((folder / "mine.onnx").read_bytes())
    model = onnx.load(folder / "theirs.onnx")
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"{name}_new" if name == made else name for name in names]
    onnx.save(model, into / "theirs.onnx")


def corrected_map(path: Path, wanted: Mapping[str, str]) -> None:
    found = load_map(path)
    pairs = [AlignedPair(name, other, "certain", ("hand",)) for name, other in wanted.items()]
    kept = [pair for pair in found.pairs if pair.tensor not in wanted]
    save_map(path, Alignment([*kept, *pairs], found.unpaired, found.models))


def test_two_hundred_corrections_of_a_map_are_kept_and_carried_over(models: Path, tmp_path: Path) -> None:
    path, again = tmp_path / "map.json", tmp_path / "again.json"
    compared(models, save_align=str(path))
    wanted = dict(list(swapped(load_map(path)).items())[:COUNT])
    assert len(wanted) == COUNT
    corrected_map(path, wanted)
    done = compared(models, align=str(path), save_align=str(again))
    assert hand(again) == wanted
    assert not done.texts("warning") or not any("corrections" in text for text in done.texts("warning"))
    gone = next(iter(wanted.values()))
    with_a_new_name(models, gone, tmp_path / "changed")
    done = compared(tmp_path / "changed", align=str(again), save_align=str(path))
    kept = {name: other for name, other in wanted.items() if other != gone}
    assert hand(path) == kept
    (told,) = [text for text in done.texts("warning") if "corrections" in text]
    assert f"{COUNT - 1} corrections by hand are kept, 1 dropped" in told and gone in told
    assert len(load_map(path).pairs) > COUNT  # the rest was found anew


def test_corrections_made_in_the_app_follow_a_model_that_changes(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    written(folder, 1)
    done = compared(folder)
    found = load_map(done.folder / "artifacts" / "alignment-1.json")
    wanted = dict(list(swapped(found).items())[:20])
    root = done.folder.parent.parent
    for name, other in wanted.items():
        save_by_hand(root, found.models, name, other)
    save_by_hand(root, found.models, (alone := [p.tensor for p in found.pairs if p.tensor not in wanted][-2]), "")
    done = compared(folder)
    assert hand(done.folder / "artifacts" / "alignment-1.json") == wanted
    gone = next(iter(wanted.values()))
    with_a_new_name(folder, gone, tmp_path / "new")
    (folder / "theirs.onnx").write_bytes((tmp_path / "new" / "theirs.onnx").read_bytes())
    done = compared(folder)
    found = load_map(done.folder / "artifacts" / "alignment-1.json")
    assert {p.tensor: p.other for p in by_hand(found)} == {n: other for n, other in wanted.items() if other != gone}
    assert [one.tensor for one in found.unpaired if one.hand] == [alone]
    (told,) = [text for text in done.texts("warning") if "corrections" in text]
    assert "20 corrections by hand are kept, 1 dropped" in told and gone in told
    assert not any("corrections" in text for text in compared(folder).texts("warning"))


def test_corrections_one_by_one_are_all_kept_and_a_contradiction_is_told(tmp_path: Path) -> None:
    (tmp_path / "alignments").mkdir()
    names, random = [f"a{i}" for i in range(40)], Random(3)
    wanted: dict[str, str] = {}
    for _ in range(COUNT):
        name, other = random.choice(names), random.choice(["", *(f"b{i}" for i in range(40))])
        overruled = [known for known, given in wanted.items() if other and given == other and known != name]
        assert save_by_hand(tmp_path, ("one", "two"), name, other) == overruled
        wanted = {known: given for known, given in wanted.items() if known not in (name, *overruled)} | {name: other}
        found = load_by_hand(tmp_path, ("one", "two"))
        assert {p.tensor: p.other for p in found.pairs} | {u.tensor: "" for u in found.unpaired} == wanted
