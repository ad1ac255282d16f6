"""Check an engine on a dataset whose right answers are known, without the comparator."""

import numpy as np

from layerwise.backend.trt import EngineFromNetwork, NetworkFromOnnxPath, TrtRunner

DATA = [np.full((1, 1, 2, 2), step, dtype=np.float32) for step in range(4)]
EXPECTED = DATA

with TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"))) as runner:
    right = 0
    for data, expected in zip(DATA, EXPECTED, strict=True):
        right += np.array_equal(runner.infer(feed_dict={"x": data})["y"], expected)
print(f"{right} of {len(DATA)} are right")
