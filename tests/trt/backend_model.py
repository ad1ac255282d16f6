"""Common setup of the backend's scenarios: small models, a feed, and runners."""

SETUP = """
import json, sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import tensorrt as trt
from layerwise._tool.backends.errors import BadFile, LayerwiseError, UsageError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.trt.building.builder import build_engine
from layerwise._tool.backends.trt.options import (
    ConfigOptions, NetworkOptions, ProfileSpec, RunOptions, TrtOptions, to_dict
)
from layerwise._tool.debugtools.actions import hand_over
hand_over()
rng = np.random.default_rng(0)
def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)
def bytes_of(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Loadable(data=model.SerializeToString())
def conv(batch="N"):
    weights = numpy_helper.from_array(rng.normal(size=(4, 3, 3, 3)).astype("f"), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["y"], "relu")]
    return bytes_of(nodes, [value("x", [batch, 3, 8, 8])], [value("y", [batch, 4, 6, 6])], [weights])
def range_of(low, likely, high):
    return ProfileSpec(min={"x": [low, 3, 8, 8]}, opt={"x": [likely, 3, 8, 8]}, max={"x": [high, 3, 8, 8]})
def feed(batch):
    return {"x": np.random.default_rng(batch).normal(size=(batch, 3, 8, 8)).astype("f")}
def opened(model, options=None, **fields):
    options = options or TrtOptions(**fields)
    return open_runner(RunnerSpec(kind="trt", options=to_dict(options)), model)
def reference(model, fed):
    return open_runner(RunnerSpec(kind="onnxrt"), model).infer(fed).outputs
def error_of(call):
    try:
        call()
    except LayerwiseError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
"""
