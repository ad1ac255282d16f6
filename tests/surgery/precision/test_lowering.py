"""Many choices of precision from one preparation: the same models as separate conversions, without their weights."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import models
from support.heavy import heavy_model
from support.views import low_nodes

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.precision.lowering import Lowering
from layerwise._tool.surgery.precision.nodes import convert_precision, emulate_precision
from layerwise._tool.surgery.precision.plan import LowType

MODELS = {"mlp": models.mlp(width=32), "conv": models.conv_net(channels=16)}


def feed_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    value = next(v for v in model.graph.input)
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    return {value.name: np.random.default_rng(0).standard_normal(shape, np.float32)}


def outputs(kind: str, model: onnx.ModelProto, feed: dict[str, np.ndarray], folder: Path) -> dict[str, np.ndarray]:
    with open_runner(RunnerSpec(kind=kind), Loadable(data=model.SerializeToString(), folder=folder)) as runner:  # type: ignore[arg-type]
        return dict(runner.infer(feed).outputs)


def one_by_one(model: onnx.ModelProto, low: LowType, keep: Collection[str], emulate: bool) -> onnx.ModelProto:
    return (emulate_precision if emulate else convert_precision)(model, low, keep=keep)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(MODELS)), st.sampled_from(["float16", "bfloat16"]), st.booleans(), st.data())
def test_a_choice_equals_a_separate_conversion(
    tmp_path: Path, name: str, low: LowType, emulate: bool, data: st.DataObject
) -> None:
    model = MODELS[name]
    file = ModelFile(models.save(model, tmp_path / f"{name}.onnx"))
    lowering = Lowering(file.structure(), file.folder, low, tmp_path / "choices", emulate=emulate)
    assert lowering.labels == low_nodes(model, low)
    kind = "onnxrt" if emulate or low == "float16" else "reference"
    for _ in range(2):
        keep = data.draw(st.sets(st.sampled_from(lowering.labels)))
        mine, expected = lowering.model(keep), one_by_one(model, low, keep, emulate)
        assert [node.SerializeToString() for node in mine.graph.node] == [
            node.SerializeToString() for node in expected.graph.node
        ]
        feed = feed_of(model)
        got, want = outputs(kind, mine, feed, lowering.folder), outputs(kind, expected, feed, tmp_path)
        assert all(np.array_equal(got[key], want[key], equal_nan=True) for key in want)


def test_a_choice_contains_no_weights(tmp_path: Path) -> None:
    file = ModelFile(models.save(heavy_model("squeezenet"), tmp_path / "heavy.onnx"))
    assert file.size > 1 << 20
    lowering = Lowering(file.structure(), file.folder, "float16", tmp_path / "choices", emulate=False)
    assert lowering.model(lowering.labels[::2]).ByteSize() < file.size // 10
    assert (lowering.folder / "weights.bin").stat().st_size < 2 * file.size
    lowering.close()
    assert not list(lowering.folder.iterdir())


def test_external_weights_and_weights_of_bodies_are_included(tmp_path: Path) -> None:
    model = models.mlp(width=32)
    path = models.with_external_weights(model, tmp_path / "outside.onnx")
    file = ModelFile(path)
    lowering = Lowering(file.structure(), file.folder, "float16", tmp_path / "choices", emulate=True)
    feed = feed_of(model)
    got = outputs("onnxrt", lowering.model(()), feed, lowering.folder)
    want = outputs("onnxrt", emulate_precision(models.mlp(width=32), "float16"), feed, tmp_path)
    np.testing.assert_array_equal(got["y"], want["y"])


@pytest.mark.parametrize("model", [models.if_model(), models.loop_model(), models.scan_model(), models.string_model()])
def test_models_with_bodies_and_strings_are_supported(tmp_path: Path, model: onnx.ModelProto) -> None:
    file = ModelFile(models.save(model, tmp_path / "m.onnx"))
    lowering = Lowering(file.structure(), file.folder, "float16", tmp_path / "choices", emulate=True)
    onnx.checker.check_model(lowering.model(()))
