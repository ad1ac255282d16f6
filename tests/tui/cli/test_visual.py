"""`layerwise inspect model --visual`: where the page goes, what colours it, and what it refuses."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from support.big_graph import hostile_model
from support.cli import Done, layerwise
from support.sample_models import mlp
from support.visual_page import page_data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models that differ in one weight, in a folder with a workspace of its own."""
    monkeypatch.setenv("LAYERWISE_HOME", str(tmp_path / "home"))
    good, bad = mlp(), mlp()
    weight = bad.graph.initializer[2]
    weight.raw_data = weight.raw_data[:-4] + b"\x00\x00\x80\x7f"  # the last number of w1 is infinite
    (tmp_path / "good.onnx").write_bytes(good.SerializeToString())
    (tmp_path / "bad.onnx").write_bytes(bad.SerializeToString())
    return tmp_path


def visual(folder: Path, *words: str) -> Done:
    return layerwise("inspect", "model", *words, cwd=folder)


def compare(folder: Path) -> None:
    done = layerwise("run", "bad.onnx", "--onnxrt", "--reference-model", "good.onnx", "--mark-all", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_page_is_named_after_the_model_and_replaces_an_older_one(folder: Path) -> None:
    for _ in range(2):
        done = visual(folder, "good.onnx", "--visual")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "good.html" in done.stdout
        assert page_data(folder / "good.html")["errors"] is None


@pytest.mark.parametrize("option", ["--save-visual", "-o", "--output"])
def test_the_page_goes_where_it_is_wanted(folder: Path, option: str) -> None:
    done = visual(folder, "good.onnx", "--visual", "--visual-port", "8000", option, "graph.html", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    size = (folder / "graph.html").stat().st_size
    assert told.items() >= {"path": "graph.html", "bytes": size, "nodes": 6, "job": None}.items()


def test_no_other_file_is_written_over(folder: Path) -> None:
    before = (folder / "good.onnx").read_bytes()
    done = visual(folder, "bad.onnx", "--visual", "-o", "good.onnx")
    assert done.returncode == 2
    assert "choose another name" in done.stdout + done.stderr
    assert (folder / "good.onnx").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nowhere.onnx", "--visual"), 1, "nowhere.onnx"),
        (("broken.onnx", "--visual"), 1, "not an ONNX model"),
        (("good.onnx", "--visual", "-o", "good.onnx/folder.html"), 1, "folder.html"),
        (("good.onnx", "--visual", "-o", "."), 2, "."),
        (("good.onnx", "--visual", "--job", "77"), 2, "there is no job 77"),
        (("good.onnx", "--visual", "--job", "1"), 2, "job 1 has no layers of this model"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(folder: Path, words: tuple[str, ...], code: int, says: str) -> None:
    (folder / "broken.onnx").write_bytes(b"not a model")
    visual(folder, "bad.onnx", "--visual")  # job 1 makes the index
    done = visual(folder, *words)
    said = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in said) == (code, False), said
    assert says in said
    assert not list(folder.glob("*.tmp"))


def test_the_newest_comparison_of_the_model_colours_the_page(folder: Path) -> None:
    compare(folder)
    compare(folder)
    done = visual(folder, "./bad.onnx", "--visual", "--json")
    assert json.loads(done.stdout)["job"] == 2
    made = page_data(folder / "bad.html")
    errors, names = made["errors"], made["nodes"]["names"]
    verdicts = zip(errors["node"], errors["passed"], strict=True)
    failing = [names[made["nodes"]["name"][node]] for node, ok in verdicts if not ok]
    assert failing == ["gemm_1", "relu_1", "gemm_2", "relu_2"]
    assert errors["rel_l2"][0] == 0
    assert errors["max_abs"][2] == "nan"
    assert errors["title"].startswith("job 2, done: onnxruntime cpu against")
    assert errors["facts"]["nodes"] == "4 fail, 2 pass, 0 not judged"


def test_a_model_that_changed_since_is_told(folder: Path) -> None:
    compare(folder)
    visual(folder, "bad.onnx", "--visual")
    assert "note" not in page_data(folder / "bad.html")["errors"]["facts"]
    path, later = folder / "bad.onnx", time.time() + 60
    os.utime(path, (later, later))
    visual(folder, "bad.onnx", "--visual")
    assert "note" not in page_data(folder / "bad.html")["errors"]["facts"], "it was only touched"
    path.write_bytes(path.read_bytes().replace(b"\x00\x00\x80\x7f", b"\x00\x00\x80\x3f"))
    os.utime(path, (1, 1))
    visual(folder, "bad.onnx", "--visual")
    assert page_data(folder / "bad.html")["errors"]["facts"]["note"] == "the model's file has changed since"
    (folder / "bad.onnx").write_bytes(hostile_model(folder / "other.onnx").read_bytes())
    assert json.loads(visual(folder, "bad.onnx", "--visual", "--json").stdout)["job"] is None


def test_another_models_comparison_colours_nothing_unless_asked_for(folder: Path) -> None:
    compare(folder)
    assert json.loads(visual(folder, "good.onnx", "--visual", "--json").stdout)["job"] is None
    asked = visual(folder, "good.onnx", "--visual", "--job", "1", "--json")
    assert json.loads(asked.stdout)["job"] == 1
    assert page_data(folder / "good.html")["errors"]["passed"].count(False) == 4


def test_what_is_no_file_is_left_alone(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = visual(folder, "good.onnx", "--visual", "-o", "pipe")
    assert done.returncode == 2
    assert "choose another name" in done.stdout + done.stderr


def test_a_name_that_is_not_utf_8_is_a_clear_error(folder: Path) -> None:
    name = os.fsdecode(b"\xff.onnx")
    (folder / "good.onnx").rename(folder / name)
    done = visual(folder, name, "--visual")
    assert done.returncode == 2
    assert "not UTF-8" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_hostile_names_reach_no_terminal(folder: Path) -> None:
    hostile_model(folder / "\x1b[31mhostile\u202e.onnx")
    done = visual(folder, "\x1b[31mhostile\u202e.onnx", "--visual")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout + done.stderr)
    assert page_data(folder / "\x1b[31mhostile\u202e.html")["title"] == "\\x1b[31mhostile\\u202e.onnx"
