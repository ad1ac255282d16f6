"""Families of onnx-graphsurgeon's examples by keys in the real app, by command line, by the script that it exports.

All nine: docs/make_surgery_transcript.py, docs/evidence/surgery_by_keys.txt.
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.edit_models import described
from support.surgery_families import FAMILIES
from support.surgery_ways import Ways, by_command, feed_of, moved, outputs, run, three_ways, wrong_ops

ROUNDING = 1e-5


@pytest.mark.parametrize("name", ["isolate a subgraph", "layer API"])
def test_keys_command_and_script_make_the_same_model_with_the_same_outputs(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    ways = three_ways(family, tmp_path)
    assert not ways.differences() and not wrong_ops(family, ways.keys)
    onnx.checker.check_model(ways.keys, full_check=True)
    assert max(moved(outputs(family, ways), "base").values()) <= ROUNDING


def test_a_model_is_grown_from_a_stub_or_from_nothing(tmp_path: Path) -> None:
    family = FAMILIES["build a model"]
    ways = three_ways(family, tmp_path)
    assert not ways.differences() and not wrong_ops(family, ways.keys)
    expect_leaky_product(ways)
    new = by_command(family.new, None, tmp_path / "new.onnx")
    anew, grown = described(onnx.load(new)), described(onnx.load(ways.keys))
    assert {**anew, "ir": 0} == {**grown, "ir": 0}


def expect_leaky_product(ways: Ways) -> None:
    feed = feed_of(ways.base)
    product = feed["x"] @ np.array([[1], [2], [3], [4]], np.float32)
    for path in (ways.keys, ways.command, ways.script):
        np.testing.assert_allclose(run(path, feed)["out"], np.where(product < 0, product / 2, product), rtol=1e-6)
