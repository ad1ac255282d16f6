"""Dumps of other programs as sides of a comparison: names, layouts, pieces of ranks, what is not compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cli import layerwise
from support.comparing import ORT, Compared, run_compare
from support.locating import run_locate
from support.models import from_text, save

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.rule import parse_rule
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.sides.making import make_sides
from layerwise._tool.debugtools.compare.sides.models import make_model
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

ALL = MarkSpec(everything=True)
GRAPH = """m (float[4, 6] x) => (float[4, 6] y) <float[4, 6] "/a/relu.0", float[4, 6] "/a/sin"> {
    "/a/relu.0" = Relu(x)
    "/a/sin" = Sin("/a/relu.0")
    y = Add("/a/sin", x)
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.onnx, and in.npz with its input."""
    made = tmp_path_factory.mktemp("dumped")
    model = from_text(GRAPH.replace('"/a/relu.0"', "r").replace('"/a/sin"', "s"))
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [{"r": "/a/relu.0", "s": "/a/sin"}.get(name, name) for name in names]
    del model.graph.value_info[:]
    save(model, made / "model.onnx")
    np.savez(made / "in.npz", x=np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32))
    return made


@pytest.fixture(scope="module")
def truth(folder: Path) -> dict[str, Array]:
    with np.load(folder / "in.npz") as found:
        x = found["x"]
    relu = np.maximum(x, 0)
    return {"/a/relu.0": relu, "/a/sin": np.sin(relu), "y": np.sin(relu) + x}


def dump(folder: Path, arrays: Mapping[str, Array]) -> str:
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return str(folder)


def compared(folder: Path, path: str, *rule: str, **more: Any) -> Compared:
    side = RunnerSpec(kind="saved", results=path, results_index=-1, dump=parse_rule(rule))
    feeds = FeedSpec(files=[str(folder / "in.npz")])
    spec = {"model": str(folder / "model.onnx"), "runners": [ORT, side], "feeds": feeds, "marks": ALL} | more
    return run_compare(CompareSpec(**spec))


def verdicts(done: Compared) -> dict[str, bool | None]:
    return {row["tensor"]: row["passed"] for row in done.table()}


@pytest.mark.parametrize("words, names", [
    ((), ("_a_relu_0", "_a_sin", "y")),
    ((), ("%2Fa%2Frelu.0", "a.sin", "y")),
    (("iter{iteration}_{name}.npy", "__=/"), ("iter0___a__relu.0", "iter0___a__sin", "iter0_y")),
], ids=["letters", "quoted", "rule"])  # fmt: skip
def test_names_of_files_are_those_of_the_model_in_another_writing(
    words: tuple[str, ...], names: tuple[str, ...], folder: Path, truth: dict[str, Array], tmp_path: Path
) -> None:
    wrong = {**truth, "/a/sin": truth["/a/sin"] + np.float32(0.01)}
    path = dump(tmp_path / "d", dict(zip(names, wrong.values(), strict=True)))
    done = compared(folder, path, *words)
    assert verdicts(done) == {"/a/relu.0": True, "/a/sin": False, "y": True}
    assert any("1 iteration, 3 files read as" in str(event.get("text")) for event in done.events)
    assert {row["mode"] for row in done.table()} == {"saved"}


def test_elements_that_may_be_raw_are_no_failure(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    halves = truth["/a/sin"].astype(ml_dtypes.bfloat16)
    arrays = {"_a_sin": halves.view(np.uint16), "_a_relu_0": truth["/a/relu.0"].astype(ml_dtypes.float8_e4m3fn)}
    path = dump(tmp_path / "d", {**arrays, "y": truth["y"]})
    done = compared(folder, path)
    assert verdicts(done) == {"y": True}
    assert {(item["tensor"], item["reason"]) for item in done.result["not_compared"]} == {
        ("/a/relu.0", "unclear"), ("/a/sin", "unclear")
    }  # fmt: skip
    done = compared(folder, path, "*relu*:float8_e4m3fn", "*sin:bfloat16")
    assert verdicts(done) == dict.fromkeys(truth, True)


def test_a_dump_gives_the_inputs_too(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    with np.load(folder / "in.npz") as found:
        path = dump(tmp_path / "d", {"x": found["x"], "_a_sin": truth["/a/sin"], "y": truth["y"]})
    assert verdicts(compared(folder, path, feeds=FeedSpec(files=[path]))) == {"/a/sin": True, "y": True}


def test_two_dumps_are_compared_without_a_model(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a.npz", "b"))
    np.savez(first, **truth)
    side = [RunnerSpec(kind="saved", results=str(first)), RunnerSpec(kind="saved", results=str(second))]
    y = truth["y"]
    dump(second, {"_a_relu_0": truth["/a/relu.0"], "a.sin": truth["/a/sin"] + 1, "y.rank0": y[:2], "y.rank1": y[2:]})
    done = run_compare(CompareSpec(runners=side))
    assert verdicts(done) == {"/a/relu.0": True, "/a/sin": False, "y": True}


def test_pieces_of_ranks_are_joined_or_not_compared(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    relu, sin = truth["/a/relu.0"], truth["/a/sin"]
    files = {
        "_a_relu_0.rank0": relu[:, :3],
        "_a_relu_0.rank1": relu[:, 3:],
        "y.rank0": truth["y"],
        "y.rank1": truth["y"],
    }
    done = compared(folder, dump(tmp_path / "d", {**files, "_a_sin.rank0": sin / 4, "_a_sin.rank1": sin * 3 / 4}))
    assert verdicts(done) == dict.fromkeys(truth, True)
    said = "\n".join(done.texts("log"))
    for words in ("concatenated along axis 1: _a_relu_0", "summed over the ranks: _a_sin", "equal on all ranks: y"):
        assert words in said
    done = compared(folder, dump(tmp_path / "e", {**files, "_a_sin.rank0": sin[1:], "_a_sin.rank1": sin[1:]}))
    assert verdicts(done) == {"/a/relu.0": True, "y": True}
    ((name, reason),) = [(item["tensor"], item["reason"]) for item in done.result["not_compared"]]
    assert (name, reason) == ("/a/sin", "unclear")
    near = {**files, "y.rank1": truth["y"] * np.float32(1.001)}
    done = compared(folder, dump(tmp_path / "f", near), marks=MarkSpec())
    assert done.table() == [] and done.result["passed"] is False
    assert "nearly equal" in done.result["nothing_compared"][0]


def test_the_node_at_fault_is_located_in_pieces_of_ranks(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    relu, sin, y = truth.values()
    files = {"_a_relu_0.rank0": relu[:2], "_a_relu_0.rank1": relu[2:], "y.rank0": y, "y.rank1": y * np.float32(1.001)}
    files |= {"_a_sin.rank0": sin / 4, "_a_sin.rank1": sin * 3 / 4 + np.float32(0.01)}
    side = RunnerSpec(kind="saved", results=dump(tmp_path / "d", files))
    feeds = FeedSpec(files=[str(folder / "in.npz")])
    compare = CompareSpec(model=str(folder / "model.onnx"), runners=[ORT, side], feeds=feeds)
    done = run_locate(LocateSpec(compare=compare))
    assert [suspect["op"] for suspect in done.suspects] == ["Sin"]
    assert any(
        "y of d is not looked at: its pieces are nearly equal" in str(event.get("text")) for event in done.events
    )


def test_a_layout_is_turned_and_an_iterator_reads_one_by_one(
    folder: Path, truth: dict[str, Array], tmp_path: Path
) -> None:
    path = dump(tmp_path / "d", {"_a_relu_0": truth["/a/relu.0"].T, "y": truth["y"].reshape(24)})
    done = compared(folder, path, "*relu*:1,0", "y:4x-1")
    assert verdicts(done) == {"/a/relu.0": True, "y": True}
    side = RunnerSpec(kind="saved", results=path, results_index=-1, dump=parse_rule(["*relu*:1,0"]))
    spec = CompareSpec(model=str(folder / "model.onnx"), runners=[side])
    (saved,) = make_sides(spec, make_model(str(folder / "model.onnx"), spec.model_options))
    assert isinstance(saved, SavedSide)
    assert {name: array.shape for name, array in saved.tensors(0)} == {"/a/relu.0": (4, 6), "y": (24,)}


def test_the_commands_take_a_dump(folder: Path, truth: dict[str, Array], tmp_path: Path) -> None:
    path = dump(tmp_path / "d", {name.replace("/", "__"): array for name, array in truth.items()})
    words = ("run", folder / "model.onnx", "--onnxrt", "--mark-all", "--load-inputs", folder / "in.npz")
    done = layerwise(*words, "--load-outputs", path, "--dump-rule", "__=/", "{name}.npy", cwd=tmp_path)
    assert done.returncode == 0 and "3 tensors compared, 0 failed" in done.stdout + done.stderr
    shown = layerwise("inspect", "data", path, "--dump-rule", "__=/", cwd=tmp_path)
    assert shown.returncode == 0 and "/a/relu.0 [dtype=float32, shape=(4, 6)]" in shown.stdout
    wrong = layerwise("run", folder / "model.onnx", "--onnxrt", "--dump-rule", "{name}", cwd=tmp_path)
    assert wrong.returncode == 2 and "--load-outputs" in wrong.stderr
