"""INT8 on TensorRT 10, the calibration data on the GPU already, with another algorithm."""

import numpy as np
import tensorrt as trt

from layerwise.backend.trt import Calibrator, CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from layerwise.cuda import DeviceArray, DeviceView, Stream

host = np.random.default_rng(2).normal(size=(1, 16)).astype(np.float32)
with DeviceArray(shape=host.shape, dtype=host.dtype) as array, Stream() as stream:
    array.copy_from(host, stream)
    stream.synchronize()
    assert np.array_equal(array.numpy(), host)
    view = DeviceView(array.ptr, array.shape, host.dtype)
    for batches in ([{"x": view}], [{"x": array.ptr}]):
        calibrator = Calibrator(batches, BaseClass=trt.IInt8MinMaxCalibrator)
        config = CreateConfig(int8=True, calibrator=calibrator)
        with TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("mlp.onnx"), config)) as runner:
            print(np.round(runner.infer({"x": host})["y"], 3))
