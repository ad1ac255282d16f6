"""Fixtures of the TensorRT tests: the fake modules in a process of their own, or in this one for one test."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FAKE = HERE / "fake"


@pytest.fixture(params=[10, 11], ids=["trt10", "trt11"])
def trt_version(request: pytest.FixtureRequest) -> int:
    """Both versions, one after the other."""
    return int(request.param)


@pytest.fixture
def fake_trt(trt_version: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment in which a child process finds the fake `tensorrt` and `cuda`; set for this process too."""
    path = os.pathsep.join(filter(None, [str(FAKE), os.environ.get("PYTHONPATH", "")]))
    found = {"PYTHONPATH": path, "LAYERWISE_FAKE_TRT": str(trt_version)}
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return {**os.environ, **found}


@pytest.fixture
def in_fake(fake_trt: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    """Run a script where `tensorrt` is the fake; what it prints."""

    def run(source: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", source], cwd=tmp_path, env={**fake_trt, **environment}, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
