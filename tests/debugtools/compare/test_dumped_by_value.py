"""Dumps whose names say nothing: found among the model's tensors by value, and nothing shown as certain that is not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from support.aligning import encoder
from support.comparing import ORT, Compared, run_compare
from support.locating import run_locate
from support.two_exports import FEED, first

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

ALL = MarkSpec(everything=True)


def every_tensor(model: onnx.ModelProto, feed: Mapping[str, Array]) -> dict[str, Array]:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = [name for node in copy.graph.node for name in node.output]
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = ort.InferenceSession(copy.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, dict(feed)), strict=True))


@pytest.fixture(scope="module")
def truth() -> dict[str, Array]:
    return every_tensor(first(), FEED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("by_value")
    onnx.save(first(), made / "model.onnx")
    onnx.save(first(wq=1.3), made / "wrong.onnx")
    np.savez(made / "in.npz", **FEED)
    return made


def compared(folder: Path, dump: Path, model: str = "model.onnx", **more: Any) -> Compared:
    side = RunnerSpec(kind="saved", results=str(dump), results_index=-1)
    feeds = FeedSpec(files=[str(folder / "in.npz")])
    spec = {"model": str(folder / model), "runners": [ORT, side], "feeds": feeds, "marks": ALL} | more
    return run_compare(CompareSpec(**spec))


def pairs(done: Compared) -> dict[str, dict[str, Any]]:
    """The first tensor of the model that each of the dump's is; what else it is are views of that one."""
    rows = [row for row in done.table("alignment") if row.get("tensor") and row.get("other")]
    return {row["other"]: row for row in reversed(rows)}


def test_a_dump_under_other_names_and_layouts_is_found(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    heads = truth["heads"]  # batch, head, place, width: another program has the heads last
    np.savez(
        tmp_path / "d.npz", a=truth["act"], b=truth["normed"].reshape(-1, 16), c=np.transpose(heads, (0, 2, 3, 1)),
        d=truth["logits"].astype(np.float16), e=truth["soft"], f=np.cos(np.arange(3 * 8 * 16, dtype=np.float32)),
    )  # fmt: skip
    done = compared(folder, tmp_path / "d.npz")
    found = pairs(done)
    assert {own: row["tensor"] for own, row in found.items() if own in "abde"} == {
        "a": "act", "b": "normed", "d": "logits", "e": "soft"
    }  # fmt: skip
    assert found["a"]["confidence"] == found["e"]["confidence"] == "certain"
    assert found["a"]["reasons"] == ["value"]
    assert found["c"]["tensor"] in ("heads", "q_split", "q") and found["c"]["confidence"] == "likely"
    assert "f" not in found and any("sure: f (nearest" in text for text in done.texts("log"))
    rows = {row["tensor"]: row["passed"] for row in done.table()}
    assert rows["act"] and rows["normed"] and rows["soft"] and rows["logits"]
    assert done.result["passed"]


def test_what_two_tensors_resemble_is_neither(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    """A residual's sum whose one part is tiny: the dump's tensor lies between the two."""
    between = (truth["normed"] + truth["residual"]) / 2
    np.savez(tmp_path / "d.npz", between=between, act=truth["act"], other=truth["soft"])
    found = pairs(compared(folder, tmp_path / "d.npz"))
    assert found["other"]["tensor"] == "soft"
    assert "between" not in found


def test_a_wrong_layer_of_a_dump_is_a_failure_and_located(
    folder: Path, truth: dict[str, Array], tmp_path: Path
) -> None:
    names = {name: f"t{place:03}" for place, name in enumerate(truth)}
    np.savez(tmp_path / "d.npz", **{names[name]: array for name, array in truth.items()})
    side = RunnerSpec(kind="saved", results=str(tmp_path / "d.npz"), results_index=-1)
    spec = CompareSpec(
        model=str(folder / "wrong.onnx"), runners=[ORT, side], feeds=FeedSpec(files=[str(folder / "in.npz")]), marks=ALL
    )
    done = run_compare(spec)
    failed = [row["tensor"] for row in done.table() if row["passed"] is False]
    assert failed and not {"fc", "fc_b", "act", "normed"} & set(failed)
    assert not done.result["passed"]
    located = run_locate(LocateSpec(compare=spec))
    assert located.suspects[0]["tensor"] == "q"


def test_a_map_and_names_are_asked_for(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", a=truth["act"], b=truth["soft"], logits=truth["logits"])
    path = tmp_path / "map.json"
    assert set(pairs(compared(folder, tmp_path / "d.npz", save_align=str(path)))) == {"a", "b", "logits"}
    done = compared(folder, tmp_path / "d.npz", align=str(path))
    assert {row["tensor"] for row in done.table()} >= {"act", "soft", "logits"}
    done = compared(folder, tmp_path / "d.npz", align="names")
    assert {row["tensor"] for row in done.table()} == {"logits"} and not done.table("alignment")


def test_pieces_of_ranks_under_other_names_are_joined(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    folders = tmp_path / "d"
    folders.mkdir()
    for rank in range(2):
        np.save(folders / f"up.rank{rank}.npy", truth["act"][..., rank * 8 : rank * 8 + 8])
        np.save(folders / f"sum.rank{rank}.npy", truth["normed"] * np.float32(0.3 + 0.4 * rank))
        np.save(folders / f"all.rank{rank}.npy", truth["soft"])
    done = compared(folder, folders)
    found = {own: row["tensor"] for own, row in pairs(done).items()}
    assert found == {"up": "act", "sum": "normed", "all": "soft"}
    assert all(row["passed"] for row in done.table())


def test_zeros_and_equal_tensors_of_an_encoder_are_not_mixed_up(tmp_path: Path) -> None:
    model = encoder(parts=True, layers=3, same=True)
    feed = {"x": np.random.default_rng(3).standard_normal((2, 12, 32)).astype(np.float32)}
    made = every_tensor(model, feed)
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "in.npz", **feed)
    floats = {name: array for name, array in made.items() if array.dtype == np.float32 and array.size > 4}
    np.savez(tmp_path / "d.npz", **{f"x{at}": array for at, array in enumerate(floats.values())})
    own = {f"x{at}": name for at, name in enumerate(floats)}
    done = compared(tmp_path, tmp_path / "d.npz")
    for other, row in pairs(done).items():
        assert np.array_equal(np.sort(made[row["tensor"]], None), np.sort(made[own[other]], None)), (other, row)
    assert len(pairs(done)) >= 0.95 * len(floats)
    assert done.result["passed"]


def test_outputs_are_looked_for_in_a_dump_that_names_none(
    folder: Path, truth: dict[str, Array], tmp_path: Path
) -> None:
    np.savez(tmp_path / "golden.npz", first=truth["act"], answer=truth["logits"])
    done = compared(folder, tmp_path / "golden.npz", marks=MarkSpec())
    assert {row["tensor"]: row["passed"] for row in done.table()} == {"logits": True}
    assert compared(folder, tmp_path / "golden.npz", "wrong.onnx", marks=MarkSpec()).result["passed"] is False
