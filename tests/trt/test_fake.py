"""The fake TensorRT builds, saves, loads and runs, with the real one's answers to mistakes."""

from collections.abc import Callable

import pytest

RunIn = Callable[..., str]

MODEL = """
import numpy as np, tensorrt as trt
from onnx import helper, numpy_helper
from cuda.bindings import runtime as cudart
weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("f")
nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["y"], "relu")]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", 3, 8, 8])],
    [helper.make_tensor_value_info("y", 1, ["N", 4, 6, 6])], [numpy_helper.from_array(weights, "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
class Logger(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []
    def log(self, severity, msg):
        self.lines.append((severity.name, msg))
logger = Logger()
def parsed():
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    good = parser.parse(model.SerializeToString())
    return builder, network, parser, good
def configured(builder, *shapes):
    config = builder.create_builder_config()
    for triple in shapes or [[(1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)]]:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *triple)
        config.add_optimization_profile(profile)
    return config
def built():
    builder, network, parser, good = parsed()
    assert good
    return bytes(builder.build_serialized_network(network, configured(builder)))
def loaded(data=None):
    return trt.Runtime(logger).deserialize_cuda_engine(data or built())
def run(context, x):
    context.set_input_shape("x", x.shape)
    y = np.zeros(tuple(context.get_tensor_shape("y")), "f")
    (_, dx), (_, dy), (_, stream) = cudart.cudaMalloc(x.nbytes), cudart.cudaMalloc(y.nbytes), cudart.cudaStreamCreate()
    kinds = cudart.cudaMemcpyKind
    cudart.cudaMemcpyAsync(dx, x.ctypes.data, x.nbytes, kinds.cudaMemcpyHostToDevice, stream)
    context.set_tensor_address("x", dx); context.set_tensor_address("y", dy)
    assert context.execute_async_v3(int(stream)), logger.lines
    cudart.cudaMemcpyAsync(y.ctypes.data, dy, y.nbytes, kinds.cudaMemcpyDeviceToHost, stream)
    cudart.cudaStreamSynchronize(stream)
    return y
"""


def test_an_onnx_model_is_built_saved_loaded_and_gives_onnxruntimes_numbers(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
import onnxruntime
x = np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype("f")
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
open("model.plan", "wb").write(built())
y = run(loaded(open("model.plan", "rb").read()).create_execution_context(), x)
print(np.abs(y - session.run(None, {"x": x})[0]).max() < 1e-5)
"""
    )
    assert said.split() == ["True"]


def test_a_dynamic_input_without_a_profile_fails_as_the_real_builder_says(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
print(builder.build_serialized_network(network, builder.create_builder_config()), logger.lines[-1])
"""
    )
    assert said.startswith("None ('ERROR'") and "no optimization profile has been defined" in said


def test_a_shape_outside_the_profile_is_refused(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
context = loaded().create_execution_context()
print(context.set_input_shape("x", (9, 3, 8, 8)), context.set_input_shape("x", (4, 3, 8, 8)), logger.lines[-1][1])
"""
    )
    assert said.startswith("False True") and "does not satisfy any optimization profile" in said


@pytest.mark.parametrize("call", ["builder.create_network('x')", "network.add_identity(1)", "config.flags = 'FP16'"])
def test_wrong_arguments_are_type_errors(in_fake: RunIn, call: str) -> None:
    said = in_fake(
        MODEL
        + f"""
builder, network, _, _ = parsed()
config = builder.create_builder_config()
try:
    {call}
except TypeError as error:
    print(str(error).splitlines()[0])
"""
    )
    assert "incompatible function arguments" in said
