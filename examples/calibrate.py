"""INT8: calibrated with data of one's own, then from the cache alone.

TensorRT 11 has no calibrators: Layerwise writes the scales into the graph there; Polygraphy cannot.
"""

import pathlib

import numpy as np

from layerwise.backend.trt import Calibrator, CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from layerwise.logger import G_LOGGER


def data():
    random = np.random.default_rng(1)
    for _ in range(4):
        yield {"x": random.normal(size=(1, 16)).astype(np.float32)}


def outputs_with(calibrator):
    config = CreateConfig(int8=True, calibrator=calibrator)
    with G_LOGGER.verbosity(), TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("mlp.onnx"), config)) as runner:
        return runner.infer({"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)})["y"]


first = outputs_with(Calibrator(data_loader=data(), cache="mlp.cache"))
print(np.round(first, 3))
print(pathlib.Path("mlp.cache").read_text())
assert np.array_equal(first, outputs_with(Calibrator(data_loader=[], cache="mlp.cache")))
