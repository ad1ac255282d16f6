"""What every scenario starts with: a convolution and a relu over a dynamic batch, built, loaded and run."""

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
