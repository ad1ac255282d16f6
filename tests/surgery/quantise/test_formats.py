"""Fake quantisation: bit-equal to onnx's operators, to ml_dtypes' casts, and as nodes in onnxruntime."""

import numpy as np
import pytest
from support.quantising import disagreements

from layerwise._tool.surgery.quantise.calibrate import Calibration, Range, weight_scale
from layerwise._tool.surgery.quantise.formats import FORMATS
from layerwise._tool.surgery.quantise.numeric import fake


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_rounds_as_onnx_and_ml_dtypes_do(name: str) -> None:
    assert not any(disagreements(name, 3000).values())


def test_a_scale_of_each_channel_or_block_leaves_less_error() -> None:
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((64, 48)) * np.geomspace(0.01, 10, 48)).astype(np.float32)
    form = FORMATS["int8"]
    errors = []
    for channel in (None, 1):
        low = fake(weight, form, weight_scale(weight, form, channel, symmetric=True))
        errors.append(float(np.square((low - weight) / np.abs(weight).max(axis=0)).sum()))
    assert errors[1] < errors[0] / 100


def test_calibrators_trade_outliers_for_rounding() -> None:
    """One value in ten thousand is a hundred times as large: all but min-max leave it out."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(100_000).astype(np.float32)
    values[::10_000] *= 100
    kept = np.abs(values) < 6
    errors: dict[Calibration, float] = {}
    for calibration in ("minmax", "percentile", "entropy", "mse"):
        found = Range()
        for half in np.split(values, 2):
            found.add(half)
        scale = found.scale(FORMATS["int8"], symmetric=True, calibration=calibration, percentile=99.9)
        errors[calibration] = float(np.square(fake(values, FORMATS["int8"], scale) - values)[kept].sum())
    assert max(errors["percentile"], errors["entropy"]) < errors["minmax"] / 20


def test_an_asymmetric_range_holds_zero_exactly() -> None:
    found = Range()
    found.add(np.linspace(0.5, 3.0, 100, dtype=np.float32))
    scale = found.scale(FORMATS["uint8"], symmetric=False)
    held = fake(np.array([0.0, 3.0], np.float32), FORMATS["uint8"], scale)
    assert held[0] == 0 and abs(held[1] - 3) < 0.01
