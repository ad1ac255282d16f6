"""Common behaviour of all runners: names, loading, dispatch."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import models

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.runner import Loadable, element_of, flat_outputs, open_runner, runner_name
from layerwise._tool.backends.specs import RunnerSpec

WHEN = time.strptime("2026-11-20 22:48:09", "%Y-%m-%d %H:%M:%S")


def test_default_names_have_polygraphys_form() -> None:
    assert runner_name(RunnerSpec(kind="onnxrt"), 0, WHEN) == "onnxrt-runner-N0-11/20/26-22:48:09"
    assert runner_name(RunnerSpec(kind="pluginref"), 2, WHEN) == "pluginref-runner-N2-11/20/26-22:48:09"
    assert runner_name(RunnerSpec(kind="trt", name="mine"), 2, WHEN) == "mine"


@pytest.mark.parametrize("kind", ["onnxrt", "reference", "pluginref"])
def test_bytes_and_path_load_the_same_model(kind: str, tmp_path: Path) -> None:
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
def test_a_missing_model_is_an_error(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a model is needed"):
        open_runner(RunnerSpec(kind=kind), Loadable())
    with pytest.raises(BadFile, match=r"none\.onnx"):
        open_runner(RunnerSpec(kind=kind), Loadable(path=tmp_path / "none.onnx"))


def test_a_kind_whose_library_is_missing_says_how_to_install_it() -> None:
    with pytest.raises(MissingDependency, match=r"pip install 'layerwise\[trt\]'"):
        open_runner(RunnerSpec(kind="trt"), Loadable(data=b""))


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"s": [1, 2]}, ["s[0]", "s[1]"]),
        ({"s": []}, []),
        ({"s": None, "y": 1}, ["y"]),
        ({"s": [None]}, []),
        ({"m": {3: 0.5, 1: 0.25}}, ["m[keys]", "m[values]"]),
        ({"m": [{"b": 1.0, "a": 2.0}, {}]}, ["m[0][keys]", "m[0][values]", "m[1][keys]", "m[1][values]"]),
        ({"s": [1], "s[1]": 2}, ["s[0]", "s[1]"]),
    ],
)
def test_non_tensor_values_become_named_arrays(values: dict[str, Any], names: list[str]) -> None:
    found = flat_outputs(values.items())
    assert list(found) == names
    assert all(isinstance(array, np.ndarray) for array in found.values())
    assert {element_of(name) for name in names if "[" in name} <= set(values) | {"s"}
    if "m[keys]" in found:
        assert found["m[keys]"].tolist() == [1, 3] and found["m[values]"].tolist() == [0.25, 0.5]


def test_duplicate_output_names_are_rejected() -> None:
    with pytest.raises(LayerwiseError, match=r"s\[0\]"):
        flat_outputs({"s[0]": 1, "s": [1]}.items())
