"""Comparing two exports of one network: no name in common, other operators and layouts."""

from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest
from support.comparing import ORT, Compared, run_compare
from support.two_exports import FEED, first, second

from layerwise._tool.backends.feeds.sources import save_feeds
from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec


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
