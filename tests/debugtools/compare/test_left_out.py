"""Nothing compared is no pass, and what was not compared is listed: models, files and iterations that do not match."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.comparing import OFF, ORT, REFERENCE, Compared, run_compare
from support.output_kinds import ABSENT, Expected, drawn_pair, elements, expected, write_model

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec, ToleranceSpec

PAIRS = [(seed, *drawn_pair(seed)) for seed in range(40)]


def runner(path: str, **more: Any) -> RunnerSpec:
    return RunnerSpec(kind="onnxrt", threads=1, model=path, **more)


def check(done: Compared, want: Expected, told: object) -> None:
    result = done.result
    listed = {item["tensor"]: item["reason"] for item in result["not_compared"]}
    assert result["passed"] is want.passed, (told, result)
    assert listed == want.reasons, told
    failed = {row["tensor"].partition("[")[0] for row in done.table() if row["passed"] is False}
    assert failed == want.failed, told
    assert result["n_compared"] == _compared(done), told
    assert bool(result["nothing_compared"]) == (not want.compared), told
    if not want.compared:
        assert all(name in result["nothing_compared"][0] for name in want.reasons), told
    warned = " ".join(done.texts("warning"))
    assert all(f"{name}" in warned for name in want.reasons) or not want.compared, told
    rates = [entry["passed"] for entry in result["summary"]]
    assert rates == [int(want.passed)] * len(rates), told


def _compared(done: Compared) -> int:
    return sum(row["passed"] is False or bool(row["passed"] and row["size"]) for row in done.table())


def disjoint(first: dict[str, str], second: dict[str, str]) -> bool:
    """Whether both give outputs, but no output by one name."""
    given = [any(kind != ABSENT and elements(kind) for kind in side.values()) for side in (first, second)]
    return all(given) and not any(ABSENT not in (first[name], second[name]) for name in first)


def empty(side: dict[str, str]) -> bool:
    return all(kind == ABSENT for kind in side.values())


def written(folder: Path, first: dict[str, str], second: dict[str, str]) -> tuple[RunnerSpec, RunnerSpec]:
    return runner(write_model(folder / "a.onnx", first)), runner(write_model(folder / "b.onnx", second))


def test_two_models_whose_outputs_do_not_match(tmp_path: Path) -> None:
    tried = 0
    for seed, first, second in PAIRS:
        if empty(first) or empty(second):
            continue
        tried += 1
        sides = written(tmp_path, first, second)
        if disjoint(first, second):
            with pytest.raises(UsageError, match="no outputs in common"):
                run_compare(CompareSpec(runners=list(sides), strict_names=True))
            continue
        done = run_compare(CompareSpec(runners=list(sides), strict_names=True))
        check(done, expected(first, second), (seed, first, second))
    assert tried >= 26


@pytest.mark.parametrize("suffix", ["json", "safetensors", ""])
def test_a_model_against_golden_outputs_that_do_not_match(tmp_path: Path, suffix: str) -> None:
    """A file does not know an output that had no value when it was saved."""
    tried = 0
    for seed, first, second in PAIRS[:16]:
        if empty(first) or empty(second):
            continue
        golden = tmp_path / f"golden{seed}{'.' * bool(suffix)}{suffix}"
        mine, theirs = written(tmp_path, first, second)
        run_compare(CompareSpec(runners=[theirs], save_outputs=str(golden)))
        held = {name: kind if kind != ABSENT and elements(kind) else ABSENT for name, kind in second.items()}
        spec = CompareSpec(runners=[mine, RunnerSpec(kind="saved", results=str(golden))], strict_names=True)
        if disjoint(first, held):
            continue
        tried += 1
        want = expected(first, held)
        want.failed -= {name for name in want.failed if "[" in name}
        check(run_compare(spec), want, (seed, first, held))
    assert tried >= 10


@pytest.mark.parametrize(("observe", "sequential"), [("every", False), ("marked", False), ("auto", True)])
def test_it_is_the_same_however_tensors_are_observed(tmp_path: Path, observe: Any, sequential: bool) -> None:
    tried = 0
    for seed, first, _ in PAIRS[:12]:
        if empty(first):
            continue
        path = write_model(tmp_path / "m.onnx", first)
        want = expected(first, first)
        marks = MarkSpec(names=list({n: 0 for n, kind in first.items() if kind != ABSENT}), only=True)
        spec = CompareSpec(
            model=path, runners=[ORT, OFF], observe=observe, marks=MarkSpec() if sequential else marks,
            sequential=sequential,
        )  # fmt: skip
        done = run_compare(spec)
        tried += 1
        assert done.result["passed"] is want.passed, (seed, first)
        listed = {item["tensor"]: item["reason"] for item in done.result["not_compared"]}
        assert listed == want.reasons, (seed, first)
    assert tried >= 8


LEAVES_NOTHING = {
    "all excluded": {"marks": MarkSpec(exclude=["*"])},
    "each excluded": {"marks": MarkSpec(exclude=["y", "s", "o"])},
    "marked and excluded": {"marks": MarkSpec(names=["y"], only=True, exclude=["y"])},
    "all marked and excluded": {"marks": MarkSpec(everything=True, exclude=["*"])},
    "a sequence of another length is excluded": {"marks": MarkSpec(exclude=["y", "o", "s*"])},
    "an index tolerance of all": {"metrics": ["indices"], "tolerance": ToleranceSpec(index_tolerance={"": 6})},
    "no metric": {"metrics": []},
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES_NOTHING)
@pytest.mark.parametrize("runners", [[ORT, OFF], [ORT, REFERENCE], [ORT, OFF, ORT]], ids=["two", "other", "three"])
def test_a_request_that_leaves_nothing_fails_and_says_why(tmp_path: Path, name: str, runners: list[RunnerSpec]) -> None:
    path = write_model(tmp_path / "m.onnx", {"y": "tensor", "s": "seq2", "o": "some"})
    accuracy = tmp_path / "accuracy.json"
    done = run_compare(CompareSpec(model=path, runners=runners, save_accuracy=str(accuracy), **LEAVES_NOTHING[name]))
    assert done.result["passed"] is False
    assert done.result["n_compared"] == 0 and done.result["n_failed"] == 0
    assert len(done.result["nothing_compared"]) == len(runners) - 1
    assert all("nothing was compared of" in text for text in done.result["nothing_compared"])
    assert {item["tensor"].partition("[")[0] for item in done.result["not_compared"]} >= {"y"}
    assert all(entry["rate"] == 0.0 for entry in done.result["summary"])
    assert any("nothing was compared" in text for text in done.texts("log"))


def test_a_pair_of_three_that_has_nothing_fails_though_the_other_passes(tmp_path: Path) -> None:
    full = runner(write_model(tmp_path / "a.onnx", {"y": "tensor", "s": "seq0"}))
    other = runner(write_model(tmp_path / "b.onnx", {"s": "seq0"}))
    done = run_compare(CompareSpec(runners=[full, full, other]))
    assert done.result["passed"] is False and done.result["n_failed"] == 0
    assert len(done.result["nothing_compared"]) == 1
    assert [entry["compared"] for entry in done.result["summary"]] == [1, 0]


# ── iterations ──


def golden(path: Path, model: str, count: int) -> RunnerSpec:
    run_compare(CompareSpec(model=model, runners=[ORT], feeds=FeedSpec(iterations=count), save_outputs=str(path)))
    return RunnerSpec(kind="saved", results=str(path), name=path.stem)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model, saved inputs and golden outputs of 1 to 3 iterations."""
    folder = tmp_path_factory.mktemp("counted")
    model = write_model(folder / "m.onnx", {"y": "tensor", "s": "seq2"})
    found: dict[str, Any] = {"model": model}
    for count in (1, 2, 3):
        found[f"golden{count}"] = golden(folder / f"golden{count}.json", model, count)
        save_feeds(folder / f"inputs{count}.json", [{"x": np.full(6, n, np.float32)} for n in range(count)])
        found[f"inputs{count}"] = str(folder / f"inputs{count}.json")
    return found


def check_counts(done: Compared, *counts: int) -> None:
    least = min(counts)
    assert done.result["iterations"] == least
    found = [item for item in done.result["not_compared"] if item["reason"] == "iterations"]
    assert len(found) == (len(set(counts)) > 1), counts
    told = [text for text in done.texts("warning") if "different numbers of iterations" in text]
    assert len(told) == len(found)
    if found:
        assert found[0]["iteration"] == least and f"Only the first {least} iteration(s)" in found[0]["text"]


@pytest.mark.parametrize("sequential", [False, True])
def test_inputs_and_golden_outputs_of_different_numbers_are_told(counted: dict[str, Any], sequential: bool) -> None:
    for inputs, held in product((1, 2, 3), repeat=2):
        feeds = FeedSpec(files=[counted[f"inputs{inputs}"]])
        runners = [ORT, counted[f"golden{held}"]]
        loose = ToleranceSpec(atol={"": 10.0})
        spec = CompareSpec(
            model=counted["model"], runners=runners, feeds=feeds, tolerance=loose, sequential=sequential
        )  # fmt: skip
        done = run_compare(spec)
        check_counts(done, inputs, held)
        assert done.result["passed"] is True


def test_golden_outputs_of_different_numbers_are_told(counted: dict[str, Any]) -> None:
    for counts in product((1, 2, 3), repeat=2):
        done = run_compare(CompareSpec(runners=[counted[f"golden{count}"] for count in counts]))
        check_counts(done, *counts)
    for counts in ((3, 1, 2), (2, 2, 2), (2, 3, 3)):
        done = run_compare(CompareSpec(runners=[counted[f"golden{count}"] for count in counts]))
        check_counts(done, *counts)


def test_made_up_inputs_and_more_golden_iterations_are_told(counted: dict[str, Any]) -> None:
    for made, held in product((1, 2, 3), repeat=2):
        feeds = FeedSpec(iterations=made)
        spec = CompareSpec(model=counted["model"], runners=[ORT, counted[f"golden{held}"]], feeds=feeds)
        check_counts(run_compare(spec), made, held)


def test_iterations_of_a_file_that_hold_different_outputs(tmp_path: Path) -> None:
    """What one iteration of a side has and the other's lacks is no pass, wherever in the file it is."""
    array = np.ones(3, np.float32)
    whole = {"y": array, "s[0]": array, "s[1]": array}
    for number, missing in enumerate(product(((), ("y",), ("s[1]",), ("s[0]", "s[1]"), tuple(whole)), repeat=2)):
        iterations = [{n: a for n, a in whole.items() if n not in gone} for gone in ((), *missing)]
        sides = []
        for side, outputs in (("a", [whole] * 3), ("b", iterations)):
            path = tmp_path / f"{side}{number}.json"
            results = RunResults()
            results.append(side, [IterationResult(each) for each in outputs])
            results.save(path)
            sides.append(RunnerSpec(kind="saved", results=str(path)))
        done = run_compare(CompareSpec(runners=sides))
        lacking = sum(len({name.partition("[")[0] for name in gone}) for gone in missing)
        assert done.result["n_failed"] == lacking and done.result["passed"] is (not lacking), missing


# ── what a user's function does not answer, and validation ──


@pytest.mark.parametrize(
    ("body", "passed"),
    [
        ("{}", False),
        ("{name: True for name in a if name == 'nobody'}", False),
        ("{name: True for name in a}", True),
        ("{name: name != 'y' for name in a}", False),
        ("{'all': True}", True),
    ],
)
def test_a_function_without_an_answer_gives_no_verdict(tmp_path: Path, body: str, passed: bool) -> None:
    path = write_model(tmp_path / "m.onnx", {"y": "tensor", "z": "tensor"})
    (tmp_path / "script.py").write_text(f"def compare_outputs(a, b):\n    return {body}\n")
    done = run_compare(CompareSpec(model=path, runners=[ORT, OFF], compare_script=str(tmp_path / "script.py")))
    assert done.result["passed"] is passed
    assert bool(done.result["nothing_compared"]) == (body in ("{}", "{name: True for name in a if name == 'nobody'}"))


@pytest.mark.parametrize("kinds", [{"y": "zero"}, {"s": "seq0"}, {"o": "none"}, {"y": "zero", "s": "seq0"}])
@pytest.mark.parametrize("runners", [[ORT], [ORT, OFF]], ids=["one", "two"])
def test_nothing_validated_is_no_pass(tmp_path: Path, kinds: dict[str, str], runners: list[RunnerSpec]) -> None:
    done = run_compare(CompareSpec(model=write_model(tmp_path / "m.onnx", kinds), runners=runners, validate=True))
    assert done.result["valid"] is False and done.result["passed"] is False
    assert any("nothing was validated" in text for text in done.texts("log"))


def test_saved_outputs_are_validated_too(tmp_path: Path) -> None:
    sound = np.ones(3, np.float32)
    for number, (first, second) in enumerate(product((sound, np.where(sound > 0, np.nan, sound), sound[:0]), repeat=2)):
        sides = []
        for side, array in (("a", first), ("b", second)):
            results = RunResults()
            results.append(side, [IterationResult({"y": array})])
            results.save(tmp_path / f"{side}{number}.json")
            sides.append(RunnerSpec(kind="saved", results=str(tmp_path / f"{side}{number}.json")))
        done = run_compare(CompareSpec(runners=sides, validate=True))
        broken = sum(bool(np.isnan(array).any()) for array in (first, second))
        assert len(done.table("validate")) == broken
        assert done.result["valid"] is (not broken and bool(first.size or second.size))
