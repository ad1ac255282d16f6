"""Every test has a workspace of its own, so that no test sees the user's jobs."""

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
INSTALLED = str(ROOT / ".editable")  # what an editable install puts on the path
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # for tests that import onnxruntime before ours
sys.path[:0] = [str(ROOT / "tests"), INSTALLED, str(ROOT)]  # the last for benchmarks


class _OneName(MetaPathFinder):
    """The floors can be imported from this folder too, then a second time: nothing here may."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in ("backends", "surgery", "debugtools", "tui"):
            raise ImportError(f"{name} is layerwise._tool.{name}")


sys.meta_path.insert(0, _OneName())


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
    monkeypatch.setenv("PYTHONPATH", INSTALLED)
    return home
