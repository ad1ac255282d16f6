"""Whole models through the fake: control flow, functions, dynamic shapes, types, external weights."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from support import models
from trt.conftest import ON_11

RunIn = Callable[..., str]

MODELS = {
    "mlp": models.mlp,
    "conv_net": models.conv_net,
    "if": models.if_model,
    "loop": models.loop_model,
    "scan": models.scan_model,
    "bf16": models.bf16_model,
    "dynamic": models.dynamic_model,
    "function": models.function_model,
}
COMPARE = """
import numpy as np, onnx, onnxruntime, tensorrt as trt
from tensorrt import _types
rng = np.random.default_rng(0)
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
parser = trt.OnnxParser(network, logger)
assert parser.parse_from_file("model.onnx")
config, profile = builder.create_builder_config(), builder.create_optimization_profile()
feeds = {}
for at in range(network.num_inputs):
    tensor = network.get_input(at)
    shape = [size if size >= 0 else 2 for size in tuple(tensor.shape)]
    feeds[tensor.name] = rng.normal(size=shape, scale=2).astype(_types.numpy_of(tensor.dtype))
    if -1 in tuple(tensor.shape):
        profile.set_shape(tensor.name, shape, shape, shape)
config.add_optimization_profile(profile)
engine = trt.Runtime(logger).deserialize_cuda_engine(builder.build_serialized_network(network, config))
context = engine.create_execution_context()
class Allocator(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)
    def reallocate_output_async(self, name, memory, size, alignment, stream):
        self.block = np.zeros(size, np.uint8)
        return self.block.ctypes.data
    def notify_shape(self, name, shape):
        self.shape = tuple(shape)
found = {}
for name in (engine.get_tensor_name(at) for at in range(engine.num_io_tensors)):
    if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
        assert context.set_input_shape(name, feeds[name].shape)
        context.set_tensor_address(name, feeds[name].ctypes.data)
    else:
        found[name] = Allocator()
        context.set_output_allocator(name, found[name])
assert context.execute_async_v3(0)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
if any(array.dtype.kind == "V" for array in feeds.values()):
    print("not fed through onnxruntime")
else:
    for output, expected in zip(session.get_outputs(), session.run(None, feeds)):
        answer = found[output.name]
        kind = _types.numpy_of(engine.get_tensor_dtype(output.name))
        array = answer.block[: expected.nbytes].view(kind).reshape(answer.shape)
        assert array.shape == expected.shape and np.allclose(array.astype("d"), expected.astype("d"), atol=1e-4)
    print("equal")
"""


@ON_11
@pytest.mark.parametrize("name", MODELS)
def test_a_model_agrees_with_onnxruntime(in_fake: RunIn, tmp_path: Path, name: str) -> None:
    onnx.save(MODELS[name](), tmp_path / "model.onnx")
    assert in_fake(COMPARE) in ("equal\n", "not fed through onnxruntime\n")


def test_external_weights_are_found_next_to_the_model(in_fake: RunIn, tmp_path: Path) -> None:
    models.with_external_weights(models.mlp(), tmp_path / "model.onnx")
    assert in_fake(COMPARE) == "equal\n"


@pytest.mark.parametrize("make", [models.string_model, models.sequence_model])
def test_types_that_tensorrt_lacks_are_rejected_by_name(
    in_fake: RunIn, tmp_path: Path, make: Callable[[], onnx.ModelProto]
) -> None:
    onnx.save(make(), tmp_path / "model.onnx")
    said = in_fake(
        """
import tensorrt as trt
logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
builder = trt.Builder(logger)
parser = trt.OnnxParser(builder.create_network(0), logger)
print(parser.parse_from_file("model.onnx"), parser.get_error(0).code().name, parser.get_error(0).desc())
print(parser.parse(b"rubbish"), parser.get_error(parser.num_errors - 1).code().name)
print(parser.parse_from_file("none.onnx"), parser.get_error(parser.num_errors - 1).desc())
"""
    )
    assert said.startswith("False UNSUPPORTED_NODE_DATATYPE Unsupported data type of tensor")
    assert "False MODEL_DESERIALIZE_FAILED\n" in said and "Failed to open file: none.onnx" in said
