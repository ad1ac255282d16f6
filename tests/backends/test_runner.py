"""What all runners share: names, loading, dispatch."""

import time
from pathlib import Path

import numpy as np
import pytest
from support import models

from backends.errors import BadFile, MissingDependency, UsageError
from backends.runner import Loadable, open_runner, runner_name
from backends.specs import RunnerSpec

WHEN = time.strptime("2026-11-20 22:48:09", "%Y-%m-%d %H:%M:%S")


def test_names_in_polygraphys_form() -> None:
    assert runner_name(RunnerSpec(kind="onnxrt"), 0, WHEN) == "onnxrt-runner-N0-11/20/26-22:48:09"
    assert runner_name(RunnerSpec(kind="pluginref"), 2, WHEN) == "pluginref-runner-N2-11/20/26-22:48:09"
    assert runner_name(RunnerSpec(kind="trt", name="mine"), 2, WHEN) == "mine"


@pytest.mark.parametrize("kind", ["onnxrt", "reference", "pluginref"])
def test_the_same_model_from_bytes_and_from_a_path(kind: str, tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path / "mlp.onnx")
    spec = RunnerSpec(kind=kind)
    feed = {"x": np.ones((1, 16), np.float32)}
    found = []
    for model in (Loadable(path=path), Loadable(data=path.read_bytes())):
        with open_runner(spec, model, name="one") as runner:
            assert runner.name == "one"
            assert runner.spec is spec
            found.append(runner.infer(feed).outputs["y"])
        runner.close()
        with pytest.raises(UsageError, match="one is closed"):
            runner.infer(feed)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kind", ["onnxrt", "reference", "pluginref"])
def test_no_model_and_a_missing_one(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a model is needed"):
        open_runner(RunnerSpec(kind=kind), Loadable())
    with pytest.raises(BadFile, match=r"none\.onnx"):
        open_runner(RunnerSpec(kind=kind), Loadable(path=tmp_path / "none.onnx"))


def test_a_kind_whose_library_is_missing_says_how_to_install_it() -> None:
    with pytest.raises(MissingDependency, match=r"pip install 'layerwise\[trt\]'"):
        open_runner(RunnerSpec(kind="trt"), Loadable(data=b""))
