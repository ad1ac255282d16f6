"""Fixtures of the TensorRT tests: the fake modules in a process of their own, or in this one for one test."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trt.stubs import build, load

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


@pytest.fixture(scope="session")
def live_bindings() -> Callable[[int], dict[str, str]]:
    """The environment in which stubs/load.py imports the real bindings of a version; skips where they cannot be had."""

    def find(major: int) -> dict[str, str]:
        try:
            live = build.live(major)
        except build.Unavailable as reason:
            pytest.skip(str(reason))
        return load.environment(str(live.folder), [str(library) for library in live.libraries])

    return find


@pytest.fixture
def forwarded_trt(
    fake_trt: dict[str, str], trt_version: int, live_bindings: Callable[[int], dict[str, str]], tmp_path: Path
) -> dict[str, str]:
    """As `fake_trt`, each call made on the real bindings first; names are in $LAYERWISE_FAKE_TRT_FORWARD_LOG."""
    log = tmp_path / "forwarded.txt"
    log.touch()
    forward = {"LAYERWISE_FAKE_TRT_FORWARD": "1", "LAYERWISE_FAKE_TRT_FORWARD_LOG": str(log)}
    return {**fake_trt, **live_bindings(trt_version), **forward}


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
