"""Saved outputs as a side of a comparison."""

from pathlib import Path

import numpy as np
import pytest

from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.results.inference import IterationResult, RunResults
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec


def write(path: Path, iterations: int = 2) -> Path:
    results = RunResults()
    for runner in ("first", "second"):
        results.append(
            runner,
            [
                IterationResult({"y": np.full(2, i, np.float32), "z": np.array([i])}, 0.25, runner)
                for i in range(iterations)
            ],
        )
    results.save(path)
    return path


@pytest.mark.parametrize("name", ["outputs.json", "outputs.safetensors", "outputs"])
def test_infer_returns_one_iteration_after_the_other(name: str, tmp_path: Path) -> None:
    spec = RunnerSpec(kind="saved", results=str(write(tmp_path / name)), results_index=1)
    with open_runner(spec, Loadable()) as runner:
        assert runner.name == "second"
        assert runner.outputs == ["y", "z"]
        assert runner.inputs == []
        for i in range(2):
            result = runner.infer({"anything": np.zeros(1)})
            assert result.outputs["y"].tolist() == [i, i]
            assert result.runtime == 0.25
        with pytest.raises(UsageError, match="holds 2 iterations, number 3"):
            runner.infer({})


def test_any_outputs_and_iteration_can_be_requested(tmp_path: Path) -> None:
    spec = RunnerSpec(kind="saved", results=str(write(tmp_path / "o.json")), name="golden")
    runner = open_runner(spec, Loadable())
    assert runner.name == "golden"
    assert list(runner.infer({}, ["z"]).outputs) == ["z"]
    with pytest.raises(UsageError, match="'nope'"):
        runner.infer({}, ["nope"])


def test_results_that_do_not_match_are_rejected(tmp_path: Path) -> None:
    path = str(write(tmp_path / "o.json"))
    with pytest.raises(UsageError, match="no runner number 2; there are: first, second"):
        open_runner(RunnerSpec(kind="saved", results=path, results_index=2), Loadable())
    with pytest.raises(UsageError, match="path of its results"):
        open_runner(RunnerSpec(kind="saved"), Loadable())
    with pytest.raises(BadFile, match=r"none\.json"):
        open_runner(RunnerSpec(kind="saved", results=str(tmp_path / "none.json")), Loadable())
    empty = str(write(tmp_path / "empty.json", iterations=0))
    with pytest.raises(BadFile, match="no iteration"):
        open_runner(RunnerSpec(kind="saved", results=empty), Loadable())
