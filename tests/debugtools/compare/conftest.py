"""A small model of five layers, and the same with one of them wrong."""

from pathlib import Path

import pytest
from support.layers import chain

from layerwise._tool.backends.specs import RunnerSpec


@pytest.fixture
def model(tmp_path: Path) -> str:
    return chain(tmp_path / "model.onnx")


@pytest.fixture
def faulty(tmp_path: Path) -> RunnerSpec:
    """A side whose `scale_it` node multiplies by another number."""
    return RunnerSpec(kind="onnxrt", threads=1, model=chain(tmp_path / "faulty.onnx", scale=2.002))
