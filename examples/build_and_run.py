"""Build an engine with lazy loaders, save it, and run it. FP16 is a flag on TensorRT 10; 11 has none."""

import numpy as np
import tensorrt as trt

from layerwise.backend.trt import CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, SaveEngine, TrtRunner

half = {"fp16": True} if hasattr(trt.BuilderFlag, "FP16") else {}
build_engine = EngineFromNetwork(NetworkFromOnnxPath("identity.onnx"), config=CreateConfig(tf32=True, **half))
save_engine = SaveEngine(build_engine, path="identity.engine")

with TrtRunner(save_engine, name="trt") as runner:
    data = np.ones((1, 1, 2, 2), dtype=np.float32)
    outputs = runner.infer(feed_dict={"x": data})
    assert np.array_equal(outputs["y"], data)
    print(runner.name, outputs["y"].shape, runner.last_inference_time() > 0)
