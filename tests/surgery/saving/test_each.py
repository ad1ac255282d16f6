"""A file for each weight: names like theirs, values as they were, the model's own files never replaced."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save

NAMES = ["w", "a/b", "a_b", "s.onnx", "../up"]


def model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(4).astype("f"), name) for name in NAMES]
    nodes = [helper.make_node("Add", [f"t{i}", name], [f"t{i + 1}"]) for i, name in enumerate(NAMES)]
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("t0", f"t{len(NAMES)}")]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), ir_version=8)


def test_each_weight_has_a_file_of_its_own(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "m.onnx")
    target = tmp_path / "new" / "s.onnx"
    with ModelFile(tmp_path / "m.onnx") as file:
        save(Structure.open(file), target, external=Path("x.data"), each=True, threshold=0)
    assert sorted(path.name for path in target.parent.iterdir()) == ["_up", "a_b", "a_b_1", "s.onnx", "s.onnx_1", "w"]
    before, after = (
        {t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in (model(), onnx.load(target))
    )
    assert before.keys() == after.keys() and all(np.array_equal(before[name], after[name]) for name in before)


def test_files_that_the_model_reads_are_not_replaced(tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "m.onnx", save_as_external_data=True, location="w", size_threshold=0)
    with ModelFile(tmp_path / "m.onnx") as file, pytest.raises(UsageError, match="is there already"):
        save(Structure.open(file), tmp_path / "s.onnx", external=Path("x.data"), each=True, threshold=0, overwrite=True)
    assert len(onnx.load(tmp_path / "m.onnx").graph.initializer) == len(NAMES)
