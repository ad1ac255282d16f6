"""Two exports of one network that take images in other layouts: channels first, and channels last."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.comparing import ORT, run_compare
from support.locating import between
from support.models import from_text

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

_KERNEL = np.random.default_rng(3).standard_normal((4, 3, 1, 1)).astype(np.float32)


def first() -> onnx.ModelProto:
    model = from_text(
        """first (float[2, 3, 5, 5] image) => (float[2, 4, 5, 5] y) {
            [conv] c = Conv(image, k)
            [act] y = Tanh(c)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(_KERNEL, "k"))
    return model


def last(factor: float = 1.0) -> onnx.ModelProto:
    model = from_text(
        """last (float[2, 5, 5, 3] input_1) => (float[2, 5, 5, 4] out) {
            [mul] m = MatMul(input_1, w)
            [tanh] out = Tanh(m)
        }"""
    )
    weight = (_KERNEL[:, :, 0, 0].T * np.float32(factor)).copy()
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def spec_of(folder: Path, **more: object) -> CompareSpec:
    onnx.save(first(), folder / "first.onnx")
    onnx.save(last(), folder / "last.onnx")
    runners = [ORT, msgspec.structs.replace(ORT, model=str(folder / "last.onnx"))]
    return msgspec.structs.replace(CompareSpec(model=str(folder / "first.onnx"), runners=runners), **more)


def test_images_are_turned_for_a_side_that_takes_channels_last(tmp_path: Path) -> None:
    done = run_compare(spec_of(tmp_path, marks=MarkSpec(everything=True)))
    assert done.result["passed"]
    assert {row["tensor"]: row["other"] for row in done.table("alignment")} == {"c": "m", "y": "out"}
    assert any("turned to shape [2, 5, 5, 3]" in text for text in done.texts("warning"))
    with pytest.raises(UsageError, match="no data for input input_1"):
        run_compare(spec_of(tmp_path, strict_names=True))


def test_a_fault_between_layouts_is_located(tmp_path: Path) -> None:
    feed = {"input_1": np.random.default_rng(0).standard_normal((2, 5, 5, 3)).astype(np.float32)}
    (suspect,) = between(last(1.1), first(), tmp_path, feed).suspects
    assert "mul" in {suspect["node"], *(node["node"] for node in suspect["region"])}
