"""Comparing two exports of one network: no name in common, other operators and layouts."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from support.comparing import ORT, Compared, run_compare
from support.locating import run_locate
from support.models import from_text
from support.two_exports import FEED, first, second

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.io import load_any
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.file import load_map, save_map
from layerwise._tool.debugtools.compare.aligning.by_hand import save_by_hand
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec


def spec_of(mine: onnx.ModelProto, theirs: onnx.ModelProto, folder: Path, **more: Any) -> CompareSpec:
    for name, model in (("mine", mine), ("theirs", theirs)):
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    fed = mine.graph.input[0].name
    save_feeds(folder / "feed.safetensors", [{fed: FEED["tokens"]}])
    runners = [ORT, msgspec.structs.replace(ORT, model=str(folder / "theirs.onnx"))]
    more = {"marks": MarkSpec(everything=True), "feeds": FeedSpec(files=[str(folder / "feed.safetensors")])} | more
    return CompareSpec(model=str(folder / "mine.onnx"), runners=runners, **more)


def compared(mine: onnx.ModelProto, theirs: onnx.ModelProto, folder: Path, **more: Any) -> Compared:
    return run_compare(spec_of(mine, theirs, folder, **more))


def pairs(done: Compared) -> dict[str, str]:
    return {row["tensor"]: row["other"] for row in done.table("alignment") if row.get("tensor") and row.get("other")}


@pytest.mark.parametrize("turned", [False, True])
def test_two_exports_of_one_network_agree_tensor_by_tensor(turned: bool, tmp_path: Path) -> None:
    models = (second(), first()) if turned else (first(), second())
    done = compared(*models, tmp_path)
    found = pairs(done)
    for name, other in {
        "fc_b": "2",
        "act": "3",
        "normed": "12",
        "heads": "15",
        "soft": "16",
        "logits": "result",
    }.items():
        assert (found[other] == name) if turned else (found[name] == other)
    assert {row["tensor"] for row in done.table() if row["passed"] is not True} == set()
    assert done.result["passed"]
    assert any("tensors paired" in text for text in done.texts("log"))


def test_what_follows_a_fault_keeps_its_counterparts(tmp_path: Path) -> None:
    done = compared(first(w1=1.05), second(), tmp_path)
    assert pairs(done)["logits"] == "result" and pairs(done)["soft"] == "16"
    assert done.result["first_bad"]["tensor"] == "fc_b" and done.row("fc_b")["tensor2"] == "2"
    assert not done.result["passed"]


def test_a_tensor_without_counterpart_is_told_with_the_nearest_miss(tmp_path: Path) -> None:
    done = compared(first(), second(), tmp_path)
    (fused,) = [item for item in done.result["not_compared"] if item["tensor"] == "fc"]
    assert fused["reason"] == "no counterpart" and fused["layer"]
    assert [row for row in done.table("alignment") if row.get("tensor") == "fc" and not row.get("other")]


def test_names_alone_decide_where_that_is_asked_for(tmp_path: Path) -> None:
    mine, theirs = first(), second()
    for field in (theirs.graph.input[0], theirs.graph.node[0]):
        if isinstance(field, onnx.NodeProto):
            field.input[0] = "tokens"
        else:
            field.name = "tokens"
    theirs.graph.output[0].name = theirs.graph.node[-1].output[0] = "logits"
    done = compared(mine, theirs, tmp_path, align="names")
    assert [row["tensor"] for row in done.table()] == ["logits"] and not done.table("alignment")


def test_outputs_alone_are_paired_by_their_names(tmp_path: Path) -> None:
    done = compared(first(), second(), tmp_path, marks=MarkSpec())
    assert not done.table("alignment") and done.result["passed"]
    assert any("Output names did not match" in text for text in done.texts("warning"))


def test_a_map_says_what_belongs_together(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    compared(first(), second(), tmp_path, save_align=str(path))
    found = load_map(path)
    wrong = [
        pair if pair.tensor != "normed" else AlignedPair("normed", "11", "certain", ("hand",)) for pair in found.pairs
    ]
    save_map(path, msgspec.structs.replace(found, pairs=wrong))
    done = compared(first(), second(), tmp_path, align=str(path))
    assert done.row("normed")["tensor2"] == "11" and done.row("normed")["passed"] is False
    assert done.row("act")["passed"] and not any("finding out" in text for text in done.texts("log"))


def test_a_map_of_other_models_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    compared(first(), second(), tmp_path, save_align=str(path))
    with pytest.raises(UsageError, match="other models"):
        compared(second(), first(), tmp_path, align=str(path))


def test_pairs_corrected_by_hand_are_there_in_later_runs(tmp_path: Path) -> None:
    done = compared(first(), second(), tmp_path)
    models = load_map(done.folder / "artifacts" / "alignment-1.json").models
    save_by_hand(done.folder.parent.parent, models, "q", "12")
    save_by_hand(done.folder.parent.parent, models, "heads", "")
    again = compared(first(), second(), tmp_path)
    assert again.row("q")["tensor2"] == "12" and not [row for row in again.table() if row["tensor"] == "heads"]


@pytest.mark.parametrize("corrected", [False, True])
def test_rows_of_another_alignment_are_not_taken_up(corrected: bool, tmp_path: Path) -> None:
    spec = spec_of(first(), second(), tmp_path)
    done = run_compare(spec)
    if corrected:
        models = load_map(done.folder / "artifacts" / "alignment-1.json").models
        save_by_hand(done.folder.parent.parent, models, "q", "12")
    again = run_compare(spec, done.folder, 2)
    told = any("other tensors belong together than before" in text for text in again.texts("warning"))
    rows = [row for row in again.table() if row["tensor"] == "q"]
    assert told is corrected and len(rows) == 1 + corrected and rows[-1]["tensor2"] == ("12" if corrected else "13")


@pytest.mark.parametrize("observe", ["marked", "executed"])
def test_layers_of_optimised_graphs_are_paired_too(observe: str, tmp_path: Path) -> None:
    done = compared(first(), second(), tmp_path, observe=observe)
    assert done.result["passed"] and len(done.table()) >= 4


def test_layers_are_held_against_the_truth_of_another_export(tmp_path: Path) -> None:
    done = compared(first(wq=1.05), second(), tmp_path, truth=True)
    assert done.row("normed")["truth"]["suspect"] < 2 and done.row("soft")["truth"]["suspect"] < 2
    assert done.row("q")["truth"]["suspect"] > 100


def test_saved_outputs_are_the_sides_own(tmp_path: Path) -> None:
    compared(first(), second(), tmp_path, save_outputs=str(tmp_path / "out.json"))
    _, (_, theirs) = load_any(tmp_path / "out.json").items()
    assert theirs[0].outputs["16"].shape == (8, 4, 3, 4)


def test_layouts_follow_the_shapes_of_the_inputs(tmp_path: Path) -> None:
    save_feeds(tmp_path / "feeds.safetensors", [{"tokens": FEED["tokens"]}, {"tokens": FEED["tokens"][:2] * 0.7}])
    done = compared(first(), second(), tmp_path, feeds=FeedSpec(files=[str(tmp_path / "feeds.safetensors")]))
    assert done.result["passed"] and done.result["n_rows"] == 22
    assert {tuple(row["shape"]) for row in done.table() if row["tensor"] == "soft"} == {(3, 4, 8, 4), (2, 4, 8, 4)}


@pytest.mark.parametrize(("text", "told"), [("{", "not JSON"), ('{"pairs": []}', "not a map"), (None, "map.json")])
def test_what_is_no_map_is_told(text: str | None, told: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "map.json").write_text(text)
    with pytest.raises(LayerwiseError, match=told):
        compared(first(), second(), tmp_path, align=str(tmp_path / "map.json"))


def test_a_pair_of_shapes_that_nothing_brings_together_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    save_map(path, Alignment([AlignedPair("act", "4", "certain", ("hand",))]))
    done = compared(first(), second(), tmp_path, align=str(path))
    (item,) = [item for item in done.result["not_compared"] if item["tensor"] == "act"]
    assert "has it as 4, but its shape is [3, 8, 16] here and [24, 1] there" in item["text"]
    assert "act" not in {row["tensor"] for row in done.table()} and done.row("logits")["passed"]


def test_a_numbering_that_is_shifted_does_not_mislead(tmp_path: Path) -> None:
    def numbered(*before: str) -> onnx.ModelProto:
        calls = [*before, "Tanh", "Neg", "Exp", "Sigmoid", "Sqrt", "Abs"]
        body = " ".join(f"v{k} = {call}({f'v{k - 1}' if k else 'x'})" for k, call in enumerate(calls))
        return from_text(f"m (float[4,8] x) => (float[4,8] y) {{ {body} y = Relu(v{len(calls) - 1}) }}")

    more = {"feeds": FeedSpec(), "marks": MarkSpec(everything=True)}
    for name, model in (("mine", numbered()), ("theirs", numbered("Identity"))):
        onnx.save(model, tmp_path / f"{name}.onnx")
    runners = [ORT, msgspec.structs.replace(ORT, model=str(tmp_path / "theirs.onnx"))]
    done = run_compare(CompareSpec(model=str(tmp_path / "mine.onnx"), runners=runners, **more))
    assert pairs(done) == {**{f"v{k}": f"v{k + 1}" for k in range(6)}, "y": "y"}
    assert done.result["passed"] and any("stand for other operators" in text for text in done.texts("log"))
    assert not run_compare(
        CompareSpec(model=str(tmp_path / "mine.onnx"), runners=runners, align="names", **more)
    ).result["passed"]


@pytest.mark.parametrize("last", ["Sqrt", "Log"])
def test_tensors_of_nan_alone_are_aligned_by_what_is_around_them(last: str, tmp_path: Path) -> None:
    def named(prefix: str) -> onnx.ModelProto:
        calls = ["Exp", "Neg", last, "Tanh", "Abs"]
        body = " ".join(f"{prefix}{k} = {call}({f'{prefix}{k - 1}' if k else 'x'})" for k, call in enumerate(calls))
        return from_text(f"m (float[4,8] x) => (float[4,8] y) {{ {body} y = Relu({prefix}4) }}")

    for name in ("mine", "theirs"):
        onnx.save(named(name), tmp_path / f"{name}.onnx")
    runners = [ORT, msgspec.structs.replace(ORT, model=str(tmp_path / "theirs.onnx"))]
    spec = CompareSpec(model=str(tmp_path / "mine.onnx"), runners=runners, marks=MarkSpec(everything=True))
    found = pairs(run_compare(spec))
    assert found == {**{f"mine{k}": f"theirs{k}" for k in range(5)}, "y": "y"}


def test_codes_of_another_zero_point_are_not_held_against_each_other(tmp_path: Path) -> None:
    """onnxruntime writes int8 codes as uint8 ones, 128 higher, into the model that it saves."""
    text = """g (float[4,6] x) => (float[4,6] y) <{kind} {name}z = {{{zero}}}, float {name}s = {{0.02}}> {{
        {name}q = QuantizeLinear(x, {name}s, {name}z)  {name}d = DequantizeLinear({name}q, {name}s, {name}z)
        y = Sigmoid({name}d) }}"""
    mine, theirs = (
        from_text(text.format(kind=kind, name=name, zero=zero), opset=19)
        for kind, name, zero in (("uint8", "a", 130), ("int8", "b", 2))
    )
    feed = {"x": np.random.default_rng(0).uniform(-2, 2, (4, 6)).astype(np.float32)}
    save_feeds(tmp_path / "x.safetensors", [feed])
    spec = spec_of(mine, theirs, tmp_path, feeds=FeedSpec(files=[str(tmp_path / "x.safetensors")]))
    done = run_compare(spec)
    assert done.result["passed"], done.result["conclusion"]
    assert pairs(done)["ad"] == "bd"
    assert "aq" in [each["tensor"] for each in done.result["not_compared"]]
    assert not run_locate(LocateSpec(compare=spec)).nodes
