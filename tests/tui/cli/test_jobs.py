"""Jobs from the command line: detached, listed, shown, followed, pruned; and the other commands on files."""

import json
import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.cli import layerwise, polygraphy
from support.models import mlp

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise.json import load_json, save_json


def said(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "m.onnx")
    return tmp_path


def test_a_detached_job_is_followed_listed_and_pruned(folder: Path) -> None:
    started = layerwise("run", "m.onnx", "--onnxrt", "--onnxrt", "--detach", cwd=folder)
    assert started.returncode == 0
    job = re.search(r"Job (\d+) started", started.stdout)[1]
    followed = layerwise("attach", job, cwd=folder)
    assert followed.returncode == 0
    assert "Accuracy Summary" in followed.stdout
    assert f"Job {job}: done" in followed.stdout
    again = layerwise("attach", "--json", cwd=folder)
    assert json.loads(again.stdout)["result"]["passed"] is True
    assert re.search(rf"{job}  done .* run m.onnx --onnxrt --onnxrt", layerwise("jobs", cwd=folder).stdout)
    (listed,) = json.loads(layerwise("jobs", "list", "--json", cwd=folder).stdout)
    assert (listed["state"], listed["command"]) == ("done", "layerwise run m.onnx --onnxrt --onnxrt")
    assert "state      done" in layerwise("jobs", "show", job, cwd=folder).stdout
    assert layerwise("jobs", "logs", job, "-f", cwd=folder).returncode == 0
    assert layerwise("jobs", "retry", job, cwd=folder).returncode == 0
    assert layerwise("attach", job, cwd=folder).returncode == 0
    assert "1 job removed" in layerwise("jobs", "prune", cwd=folder).stdout
    assert layerwise("jobs", cwd=folder).stdout == "no jobs\n"


def test_a_comparison_that_failed_is_told_from_one_that_passed(folder: Path) -> None:
    onnx.save(mlp(seed=1), folder / "worse.onnx")
    words = ("run", "m.onnx", "--onnxrt", "--reference-model", "worse.onnx")
    assert layerwise(*words, cwd=folder).returncode == 1
    assert re.search(r"1  done, bad .* run m.onnx", layerwise("jobs", cwd=folder).stdout)
    assert "Job 1: done, bad\n" in layerwise("attach", "1", cwd=folder).stdout
    shown = layerwise("jobs", "show", "1", cwd=folder).stdout
    assert re.search(r"passed +False\n", shown) and "layerwise attach 1" in shown
    assert re.search(r"started +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", shown)


def test_older_jobs_are_counted(folder: Path) -> None:
    workspace = Workspace()
    for _ in range(23):
        os.close(workspace.create(JobSpec(action="compare"))[1])
    assert layerwise("jobs", cwd=folder).stdout.splitlines()[-1] == "3 older: layerwise jobs list --all"
    assert len(layerwise("jobs", "list", "--all", cwd=folder).stdout.splitlines()) == 24


def test_a_failed_job_can_be_seen_again(folder: Path) -> None:
    assert layerwise("run", "nowhere.onnx", "--onnxrt", cwd=folder).returncode == 1
    again = layerwise("attach", cwd=folder)
    assert again.returncode == 1
    assert "nowhere.onnx" in again.stderr


@pytest.mark.parametrize("words", [("show", "99"), ("cancel", "99"), ("retry", "x"), ("logs", "99"), ("prune", "x")])
def test_unknown_jobs_are_told(folder: Path, words: tuple[str, ...]) -> None:
    done = layerwise("jobs", *words, cwd=folder)
    assert done.returncode == 2
    assert "`layerwise jobs` lists" in done.stderr


def test_data_is_inspected_joined_and_merged(folder: Path) -> None:
    save_json([{"x": np.ones((2, 3), np.float32)}], folder / "a.json")
    save_json([{"x": np.zeros((2, 3), np.float32)}], folder / "b.json")
    assert layerwise("data", "concat", "a.json", "b.json", "-o", "both.json", cwd=folder).returncode == 0
    assert [feed["x"].mean() for feed in load_json(folder / "both.json")] == [1, 0]
    saving = ("--onnxrt", "--save-inputs", "i.json", "--save-outputs", "o.json")
    assert layerwise("run", "m.onnx", *saving, cwd=folder).returncode == 0
    assert layerwise("data", "merge", "i.json", "o.json", "-o", "m.json", cwd=folder).returncode == 0
    assert list(load_json(folder / "m.json")[0]) == ["x", "y"]
    for words in (("both.json", "--all"), ("o.json", "-s"), ("i.json", "--histogram")):
        done, real = (tool("inspect", "data", *words, cwd=folder) for tool in (layerwise, polygraphy))
        assert done.returncode == real.returncode == 0
        assert said(done.stdout) == said(real.stdout)[1:], words  # without its line on the module `colored`
    found = json.loads(layerwise("inspect", "data", "o.json", "--json", cwd=folder).stdout)
    assert found["kind"] == "outputs"


def test_a_model_is_inspected(folder: Path) -> None:
    for words in ((), ("--show", "layers"), ("--show", "layers", "attrs", "weights")):
        done = layerwise("inspect", "model", "m.onnx", *words, cwd=folder)
        real = polygraphy("inspect", "model", "m.onnx", *words, cwd=folder)
        assert done.returncode == 0
        ours, theirs = done.stdout.splitlines(), real.stdout.splitlines()
        assert ours[1:] == theirs[-len(ours) + 1 :]
    assert json.loads(layerwise("inspect", "model", "m.onnx", "--json", cwd=folder).stdout)
    engine = layerwise("inspect", "model", "m.engine", cwd=folder)
    assert (engine.returncode, "TensorRT" in engine.stderr) == (1, True)


def test_saved_accuracy_is_checked_anew(folder: Path) -> None:
    off = mlp()
    for weight in off.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.01), weight.name))
    onnx.save(off, folder / "off.onnx")
    line = ("run", "m.onnx", "--onnxrt", "--reference-model", "off.onnx", "--compare", "simple", "l2")
    assert layerwise(*line, "--save-accuracy-results", "acc.json", cwd=folder).returncode == 1
    for words, code in (
        (("--compare", "simple", "--check-error-stat", "max"), 1),
        (("--compare", "simple", "--check-error-stat", "max", "--atol", "100"), 0),
        (("--compare", "l2", "--l2-threshold", "100"), 0),
        (("--compare", "l2", "--l2-threshold", "y:1e-9", "1000"), 1),
        (("--compare", "simple", "--check-error-stat", "mean", "--rtol", "10", "--check-average"), 0),
    ):
        assert layerwise("check", "accuracy", "acc.json", *words, cwd=folder).returncode == code, words
        assert polygraphy("check", "accuracy", "acc.json", *words, cwd=folder).returncode == code, words
    cannot = layerwise("check", "accuracy", "acc.json", "--compare", "simple", "--atol", "1e-3", cwd=folder)
    assert (cannot.returncode, "--check-error-stat" in cannot.stderr) == (2, True)


def test_words_that_are_not_commands(folder: Path) -> None:
    for words, hint in (
        (("rnu",), "`layerwise run`"),
        (("inspect", "modle"), "`layerwise inspect model`"),
        (("convrt",), "neither"),
    ):
        done = layerwise(*words, cwd=folder)
        assert done.returncode == 2
        assert hint in done.stderr
    assert "commands:" in layerwise(cwd=folder).stdout
    assert layerwise("--version", cwd=folder).stdout.startswith("Layerwise | Version: ")
