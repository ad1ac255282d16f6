"""Every test has a workspace of its own, so that no test sees the user's jobs."""

import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for tests that import onnxruntime before ours
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders; mktemp would list all that there are for each of thousands."""
    root = tmp_path_factory.mktemp("homes")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def workspace(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    home = next(homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("LAYERWISE_HOME", str(home))
    monkeypatch.setenv("LAYERWISE_LEASES", str(home / "leases"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    return home
