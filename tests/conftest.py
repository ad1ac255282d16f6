"""Every test has a workspace of its own, so that no test sees the user's jobs."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]


@pytest.fixture(autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LAYERWISE_HOME", str(home))
    monkeypatch.setenv("LAYERWISE_LEASES", str(home / "leases"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    return home
