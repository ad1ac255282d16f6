"""Run an engine that was saved before (build_and_run.py)."""

import numpy as np

from layerwise.backend.common import BytesFromPath
from layerwise.backend.trt import EngineFromBytes, TrtRunner

load_engine = EngineFromBytes(BytesFromPath("identity.engine"))

with TrtRunner(load_engine) as runner:
    for value in (1, 2):
        outputs = runner.infer({"x": np.full((1, 1, 2, 2), value, np.float32)})
        print(outputs["y"].ravel().tolist())
