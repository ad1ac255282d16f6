"""The effect of edits on a model's outputs."""

from pathlib import Path

import pytest
from support.edit_models import edit, opened, varied_model

from layerwise._tool.debugtools.edits.effect import effect_of


def test_the_effect_on_outputs_is_measured(tmp_path: Path) -> None:
    model = opened(varied_model(tmp_path / "varied.onnx"))
    same = effect_of(model, edit("deduplicate").apply(model), warn=lambda text: None)
    assert same.unmoved
    moved = effect_of(model, edit("insert-node", tensor="z", op="Add", operands=[{"values": 0.5}]).apply(model),
                      warn=lambda text: None)  # fmt: skip
    found = {output.name: output for output in moved.outputs}
    assert found["y"].equal
    assert found["z"].largest == pytest.approx(0.5, rel=1e-5)
    cut = effect_of(model, edit("set-outputs", outputs=[{"name": "sum"}]).apply(model), warn=lambda text: None)
    assert (cut.gone, cut.new) == (("y", "z"), ("sum",))
