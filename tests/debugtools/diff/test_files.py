"""Two files of any kind: told apart by what they hold, compared accordingly, within bounds."""

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import models
from support.cli import layerwise

from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.jobs.actions import find_action
from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.diff.action import diff_files
from layerwise._tool.debugtools.diff.files import diff_bytes
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec
from layerwise.comparator import RunResults

Feed = dict[str, np.ndarray[Any, Any]]


def results(*iterations: Feed, runner: str = "onnxrt-runner-N0-11/21/26-10:00:00") -> RunResults:
    made = RunResults()
    made.add(list(iterations), 0.1, runner)
    return made


def compared(a: Path, b: Path, **fields: Any) -> DiffOutcome:
    return diff_files(DiffSpec(a=str(a), b=str(b), **fields))


def found(outcome: DiffOutcome, key: str) -> list[dict[str, Any]]:
    return [item.fields for section in outcome.sections if section.key == key for item in section.items]


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Results and inputs, in every form they are saved in."""
    other = X.copy()
    other[1, 2] += 0.5
    for end in ("json", "safetensors"):
        results({"x": X, "n": np.array([np.nan], np.float32)}).save(tmp_path / f"a.{end}")
        results({"x": other, "n": np.array([np.nan], np.float32)}, runner="later").save(tmp_path / f"b.{end}")
        save_feeds(tmp_path / f"in.{end}", [{"x": X}])
    results({"x": X, "n": np.array([np.nan], np.float32)}).save(tmp_path / "folder")
    return tmp_path


@pytest.mark.parametrize("first", ["a.json", "a.safetensors", "folder"])
@pytest.mark.parametrize("second", ["b.json", "b.safetensors"])
def test_results_are_compared_by_value_in_any_form(saved: Path, first: str, second: str) -> None:
    outcome = compared(saved / first, saved / second)
    assert outcome.kind == "results" and not outcome.equal
    (changed,) = found(outcome, "changed")
    assert changed["tensor"] == "x" and changed["at"] == [1, 2] and changed["over"] == 1
    assert changed["max_abs"] == pytest.approx(0.5)
    assert compared(saved / first, saved / "a.json").equal


def test_bits_that_are_equal_are_equal_even_if_they_are_nan(saved: Path) -> None:
    assert (
        compared(saved / "a.json", saved / "a.safetensors").summary
        == "equal: 2 tensors (2 to the bit, 0 within tolerance)"
    )


def test_tolerances_decide(saved: Path) -> None:
    for given_tolerance, equal in (
        (ToleranceSpec(atol={"": 0.6}), True),
        (ToleranceSpec(rtol={"": 0.1}), True),
        (ToleranceSpec(rtol={"": 0.01}), False),
        (ToleranceSpec(atol={"other": 9.0}), False),
    ):
        assert compared(saved / "a.json", saved / "b.json", tolerance=given_tolerance).equal is equal
    assert compared(saved / "a.json", saved / "b.json", metrics=["cosine_similarity"]).equal


def test_what_only_one_side_has_makes_them_differ(tmp_path: Path) -> None:
    results({"x": X, "y": X}, {"x": X}).save(tmp_path / "a.json")
    results({"x": X, "z": X}).save(tmp_path / "b.json")
    outcome = compared(tmp_path / "a.json", tmp_path / "b.json")
    assert [entry["tensor"] for entry in found(outcome, "only_a")] == ["y"]
    assert [entry["tensor"] for entry in found(outcome, "only_b")] == ["z"]
    assert found(outcome, "counts") == [{"what": "iterations", "a": 2, "b": 1}]


def test_other_shapes_and_types_are_told(tmp_path: Path) -> None:
    results({"x": X, "t": X}).save(tmp_path / "a.json")
    results({"x": X.T.copy(), "t": X.astype(np.float64)}).save(tmp_path / "b.json")
    outcome = compared(tmp_path / "a.json", tmp_path / "b.json")
    (changed,) = found(outcome, "changed")
    assert changed["shapes"] == [[3, 4], [4, 3]] and "shapes differ" in changed["note"]


def test_inputs_are_compared_too_and_not_with_results(saved: Path) -> None:
    assert compared(saved / "in.json", saved / "in.safetensors").kind == "inputs"
    save_feeds(saved / "other.json", [{"x": X + 1}])
    assert not compared(saved / "in.json", saved / "other.json").equal
    with pytest.raises(UsageError, match=r"saved inputs and .* is saved outputs.*--bytes"):
        compared(saved / "in.json", saved / "a.json")
    assert not compared(saved / "in.json", saved / "a.json", as_bytes=True).equal


def test_json_is_compared_value_by_value(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text('{"k": [1, 2.0, {"deep": null}], "gone": true, "n": NaN, "same": "s"}')
    b.write_text('{"same": "s", "n": NaN, "k": [1, 2, {"deep": 0}, "more"], "come": []}')
    outcome = compared(a, b)
    assert outcome.kind == "json"
    assert found(outcome, "changed") == [{"place": "$.k[2].deep", "a": None, "b": 0}]
    assert found(outcome, "only_a") == [{"place": "$.gone", "value": True}]
    assert {entry["place"] for entry in found(outcome, "only_b")} == {"$.k[3]", "$.come"}
    assert compared(a, a).equal


plain = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)


@settings(max_examples=30)
@given(a=st.lists(values, min_size=1), b=st.lists(values, min_size=1))
def test_json_documents_are_equal_exactly_if_python_says_so(
    tmp_path_factory: pytest.TempPathFactory, a: list[Any], b: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("json")
    for name, value in (("a.json", a), ("b.json", b)):
        (folder / name).write_text(json.dumps(value))
    assert compared(folder / "a.json", folder / "b.json").equal == (
        json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    )
    assert compared(folder / "a.json", folder / "a.json").equal


@settings(max_examples=30)
@given(data=st.binary(min_size=1, max_size=200), flips=st.sets(st.integers(0, 199)), more=st.binary(max_size=5))
def test_bytes_say_where_they_first_differ_and_how_many_do(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, flips: set[int], more: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    other = bytearray(data)
    places = sorted(place for place in flips if place < len(data))
    for place in places:
        other[place] ^= 0xFF
    (folder / "a.bin").write_bytes(data)
    (folder / "b.bin").write_bytes(bytes(other) + more)
    outcome = diff_bytes(folder / "a.bin", folder / "b.bin")
    assert outcome.equal == (not places and not more)
    first = found(outcome, "first")
    assert first == ([{"offset": places[0], "bytes_that_differ": len(places)}] if places else [])
    assert bool(found(outcome, "size")) == bool(more)


def test_large_files_differ_beyond_the_first_block(tmp_path: Path) -> None:
    data = bytearray(np.random.default_rng(0).bytes((3 << 20) + 5))
    (tmp_path / "a.engine").write_bytes(data)
    data[(2 << 20) + 7] ^= 1
    (tmp_path / "b.engine").write_bytes(data)
    outcome = compared(tmp_path / "a.engine", tmp_path / "b.engine")
    assert outcome.kind == "bytes"
    assert found(outcome, "first") == [{"offset": (2 << 20) + 7, "bytes_that_differ": 1}]


def test_text_that_differs_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.log").write_text("one\ntwo\nthrew\n")
    lines = list(compared(tmp_path / "a.log", tmp_path / "b.log").lines(10))
    assert "line 3: 'three' and 'threw'" in lines[-1]


def test_folders_are_compared_with_all_in_them(tmp_path: Path) -> None:
    for side in ("a", "b"):
        (tmp_path / side / "deep" / "er").mkdir(parents=True)
        (tmp_path / side / "deep" / "er" / "same.txt").write_text("same")
        (tmp_path / side / "deep" / "other.bin").write_bytes(side.encode())
    (tmp_path / "a" / "left.txt").write_text("")
    (tmp_path / "b" / "right.txt").write_text("")
    (tmp_path / "b" / "loop").symlink_to(tmp_path / "b")
    os.mkfifo(tmp_path / "a" / "pipe")
    os.mkfifo(tmp_path / "b" / "pipe")
    outcome = compared(tmp_path / "a", tmp_path / "b")
    assert outcome.kind == "folders" and not outcome.equal
    assert [entry["path"] for entry in found(outcome, "only_a")] == ["left.txt"]
    assert [entry["path"] for entry in found(outcome, "only_b")] == ["loop", "right.txt"]
    assert [entry["path"] for entry in found(outcome, "changed")] == ["deep/other.bin", "pipe"]
    assert compared(tmp_path / "a" / "deep", tmp_path / "a" / "deep").equal


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    for name in ("none.json", "none.onnx", "none.safetensors"):
        with pytest.raises(BadFile, match=name):
            compared(tmp_path / "a.json", tmp_path / name)


def mutated(data: bytes, pick: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(pick.choice([1, 1, 3])):
        at = pick.randrange(len(text))
        if pick.random() < 0.5:
            text[at] ^= 1 << pick.randrange(8)
        else:
            text[at : at + pick.randint(0, 30)] = pick.randbytes(pick.randint(0, 8))
    return bytes(text) or b"x"


def test_damaged_files_give_an_error_in_words_or_an_outcome(saved: Path) -> None:
    pick = random.Random(5)
    for name, make in (("m", models.conv_net), ("if", models.if_model), ("f", models.function_model)):
        (saved / f"{name}.onnx").write_bytes(make().SerializeToString())
    (saved / "t.json").write_text(json.dumps(REPLAY))
    originals = sorted(path for path in saved.iterdir() if path.is_file())
    outcomes = []
    for number in range(300):
        source = pick.choice(originals)
        damaged = saved / f"damaged_{number}{source.suffix}"
        damaged.write_bytes(mutated(source.read_bytes(), pick))
        try:
            outcome = compared(damaged, source)
            assert all(line.isprintable() for line in outcome.lines(None))
            outcomes.append("compared")
        except LayerwiseError as error:
            assert str(error).isprintable()
            outcomes.append("refused")
    assert min(outcomes.count("compared"), outcomes.count("refused")) > 20


REPLAY = {
    "replay": {
        "conv": {
            "implementation": 5, "tactic": -7, "inputs": [
                {"dtype": "DataType.FLOAT", "strides": [4, 1], "vectorized_dim": -1, "components_per_element": 1,
                 "polygraphy_class": "TensorInfo"}
            ], "outputs": [], "polygraphy_class": "Algorithm",
        }
    },
    "polygraphy_class": "TacticReplayData",
}  # fmt: skip


def test_the_command_tells_equal_from_different_from_wrong(saved: Path) -> None:
    same = layerwise("inspect", "diff", "a.json", "b.json", "--rtol=1e-1", cwd=saved)
    assert (same.returncode, same.stdout.startswith("[I] equal: 2 tensors")) == (0, True)
    differ = layerwise("inspect", "diff", "a.json", "b.json", cwd=saved)
    assert differ.returncode == 1
    assert "x float32 3x4: max abs 0.5 at [1, 2]" in differ.stdout
    wrong = layerwise("inspect", "diff", "a.json", "none.json", cwd=saved)
    assert wrong.returncode == 2 and "none.json" in wrong.stderr
    document = json.loads(layerwise("inspect", "diff", "a.json", "b.json", "--json", cwd=saved).stdout)
    assert (document["exit_code"], document["equal"], document["kind"]) == (1, False, "results")


def test_the_job_says_the_same_as_the_command(saved: Path) -> None:
    folder, lock = Workspace().create(
        JobSpec(action="diff", params={"a": str(saved / "a.json"), "b": str(saved / "b.json")})
    )
    os.close(lock)
    result = find_action("diff", ACTIONS)(JobContext(folder, 1))
    assert (result["passed"], result["kind"]) == (False, "results")
    assert [entry["tensor"] for entry in result["differences"]["changed"]] == ["x"]
    texts = [event["text"] for event in read_events(folder) if event["type"] == "log"]
    assert texts[0] == result["summary"] and "tensors that differ: 1" in texts


def test_long_lists_are_cut_short_unless_all_is_asked_for(tmp_path: Path) -> None:
    for name, step in (("a.json", 0), ("b.json", 1)):
        (tmp_path / name).write_text(json.dumps([i + step for i in range(50)]))
    short = layerwise("inspect", "diff", "a.json", "b.json", cwd=tmp_path).stdout
    assert "… and 40 more (--all)" in short and "$[49]" not in short
    assert "$[49]: 49 → 50" in layerwise("inspect", "diff", "a.json", "b.json", "--all", cwd=tmp_path).stdout
