"""The pytest plugin in a run of its own: what fails prints the layer, and nothing is imported before it is used."""

import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from support import models
from support.baselines import drifted

from layerwise import testing
from layerwise._tool.backends import text

SCRIPT = """
import sys
import pytest


def test_nothing_is_imported_before_it_is_used():
    assert not {"layerwise.testing", "onnxruntime", "textual"} & sys.modules.keys()


def test_the_same_model(feeds):
    from layerwise.testing import assert_layers_close
    found = assert_layers_close("good.onnx", "good.onnx", feeds)
    assert len(found.rows) == 9 and found.first_wrong is None


def test_a_planted_fault(feeds):
    from layerwise.testing import assert_layers_close
    assert_layers_close("bad.onnx", "good.onnx", feeds)


def test_a_model_that_is_not_there(feeds):
    from layerwise._tool.backends.errors import LayerwiseError
    from layerwise.testing import compare_layers
    with pytest.raises(LayerwiseError, match="gone.onnx"):
        compare_layers("gone.onnx", "good.onnx", feeds)


@pytest.mark.layerwise(tolerance=0.1, baseline="kept.baseline")
def test_a_baseline(layerwise_compare, feeds):
    layerwise_compare("now.onnx", "good.onnx", feeds)
"""
CONFTEST = """
import numpy as np
import pytest


@pytest.fixture
def feeds():
    return {"x": np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outside")
    good = models.save(models.mlp(), made / "good.onnx")
    drifted(good, "w1", 1e-3, made / "bad.onnx")
    (made / "now.onnx").write_bytes(good.read_bytes())
    (made / "conftest.py").write_text(CONFTEST)
    (made / "test_models.py").write_text(SCRIPT)
    return made


def test_pytest_rewrites_no_module_of_ours() -> None:
    """pytest has found the plugin by its entry point in this run, too."""
    assert {type(module.__loader__) for module in (testing, text)} == {SourceFileLoader}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "layerwise.pytest_plugin", "--strict-markers", *words]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_what_fails_prints_the_layer_and_a_baseline_tells_what_has_grown_since(folder: Path) -> None:
    done = run(folder, "--layerwise-accept")
    assert "1 failed, 4 passed" in done.stdout, done.stdout
    assert "the first is #3 MatMul /fc1/MatMul: its inputs agree, so the fault is there" in done.stdout
    assert re.search(r">\s+3\s+MatMul\s+/fc1/MatMul\s+m1\s.*FAILED\s+leap", done.stdout)
    assert re.search(r"2\s+Relu\s+/fc0/Relu\s+h0\s.*passed", done.stdout)
    assert "layerwise jobs show" in done.stdout
    assert str(folder) not in (folder / "kept.baseline").read_text()
    (folder / "now.onnx").write_bytes((folder / "bad.onnx").read_bytes())
    later = run(folder, "-k", "test_a_baseline")
    assert later.returncode == 1
    assert "#3 MatMul /fc1/MatMul has grown" in later.stdout
    assert "What fits: its weights changed. `pytest --layerwise-accept` keeps" in later.stdout
