"""Tensors that threads compare before they are read: every row is as it is without threads."""

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper
from support.locating import between
from support.models import conv_net

from layerwise._tool.debugtools.locate import comparing_ahead, run

IMAGE = {"image": np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def test_rows_and_suspects_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = conv_net(), conv_net()
    (weight,) = [weight for weight in bad.graph.initializer if weight.name == "w1"]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.1), "w1"))
    found = []
    for threads in (0, 3):
        folder = tmp_path / str(threads)
        folder.mkdir()
        monkeypatch.setattr(run, "idle_threads", lambda count=threads: count)
        monkeypatch.setattr(comparing_ahead, "_LEAST", 1)
        found.append(between(bad, good, folder, IMAGE))
    one, other = found
    assert one.table() == other.table() and len(one.table()) > 5
    assert one.suspects == other.suspects
    assert one.nodes[:1] == ["conv1"]
