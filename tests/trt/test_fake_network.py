"""Networks built through the API: every layer that the fake runs, against numpy; names, views, types and edits."""

from collections.abc import Callable

import pytest
from trt.conftest import ON_11
from trt.scenario import MODEL

RunIn = Callable[..., str]

NETWORK = (
    MODEL
    + """
builder = trt.Builder(logger)
network = builder.create_network(0)
rng = np.random.default_rng(3)
A = rng.normal(size=(2, 3, 4)).astype("f")
B = rng.normal(size=(2, 3, 4)).astype("f")
a, b = network.add_input("a", trt.float32, (2, 3, 4)), network.add_input("b", trt.float32, (-1, 3, 4))
def value(layer, at=0):
    tensor = layer.get_output(at)
    shape, kind = tuple(tensor.shape), tensor.dtype
    tensor.name = "out"
    network.mark_output(tensor)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("b", (1, 3, 4), (2, 3, 4), (2, 3, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    assert engine is not None, logger.lines[-1]
    context = engine.create_execution_context()
    context.set_input_shape("b", (2, 3, 4))
    found = tuple(context.get_tensor_shape("out"))
    assert all(s in (-1, f) for s, f in zip(shape, found)) and len(shape) == len(found), (shape, found)
    assert engine.get_tensor_dtype("out") == kind
    result = np.zeros(found, trt.nptype(kind))
    context.set_tensor_address("a", A.ctypes.data), context.set_tensor_address("b", B.ctypes.data)
    context.set_tensor_address("out", result.ctypes.data)
    assert context.execute_async_v3(0), logger.lines[-1]
    return result
"""
)

LAYERS = {
    "identity": ("network.add_identity(a)", "A"),
    "constant": ("network.add_constant((3, 2), np.arange(6, dtype='f'))", "np.arange(6).reshape(3, 2)"),
    "sum": ("network.add_elementwise(a, b, trt.ElementWiseOperation.SUM)", "A + B"),
    "floor_div": ("network.add_elementwise(a, b, trt.ElementWiseOperation.FLOOR_DIV)", "np.floor(A / B)"),
    "greater": ("network.add_elementwise(a, b, trt.ElementWiseOperation.GREATER)", "A > B"),
    "exp": ("network.add_unary(a, trt.UnaryOperation.EXP)", "np.exp(A)"),
    "recip": ("network.add_unary(a, trt.UnaryOperation.RECIP)", "1 / A"),
    "isnan": ("network.add_unary(a, trt.UnaryOperation.ISNAN)", "np.isnan(A)"),
    "relu": ("network.add_activation(a, trt.ActivationType.RELU)", "np.maximum(A, 0)"),
    "leaky": ("leaky()", "np.where(A > 0, A, A * 0.25)"),
    "clip": ("clip()", "np.clip(A, -0.5, 0.5)"),
    "matmul": (
        "network.add_matrix_multiply(a, trt.MatrixOperation.NONE, b, trt.MatrixOperation.TRANSPOSE)",
        "A @ B.transpose(0, 2, 1)",
    ),
    "convolution": ("convolution()", "A[:, :, 1:3].sum(1, keepdims=True) * 2 + 1"),
    "softmax": ("softmax()", "np.exp(A) / np.exp(A).sum(2, keepdims=True)"),
    "reduce": ("network.add_reduce(a, trt.ReduceOperation.AVG, 0b110, True)", "A.mean((1, 2), keepdims=True)"),
    "shuffle": ("shuffle()", "A.transpose(2, 0, 1).reshape(4, 6).T"),
    "cast": ("network.add_cast(a, trt.int32)", "A.astype(np.int32)"),
    "concatenation": ("concatenation()", "np.concatenate([A, B], 2)"),
    "slice": ("network.add_slice(a, (0, 2, 1), (2, 2, 2), (1, -1, 2))", "A[:, [2, 1], 1::2]"),
    "shape": ("network.add_shape(a)", "np.array([2, 3, 4])"),
    "gather": (
        "network.add_gather(a, network.add_constant((2,), np.array([2, 0], np.int32)).get_output(0), 1)",
        "A[:, [2, 0]]",
    ),
    "select": (
        "network.add_select(network.add_elementwise(a, b, trt.ElementWiseOperation.LESS).get_output(0), a, b)",
        "np.where(A < B, A, B)",
    ),
    "topk": ("network.add_topk(a, trt.TopKOperation.MAX, 2, 0b100)", "-np.sort(-A, 2)[:, :, :2]"),
    "quantize": ("quantized()", "np.clip(np.round(A / 0.5), -128, 127) * 0.5"),
}
HELPERS = """
def leaky():
    layer = network.add_activation(a, trt.ActivationType.LEAKY_RELU)
    layer.alpha = 0.25
    return layer
def clip():
    layer = network.add_activation(a, trt.ActivationType.CLIP)
    layer.alpha, layer.beta = -0.5, 0.5
    return layer
def convolution():
    four = network.add_shuffle(a)
    four.reshape_dims = (2, 3, 4, 1)
    layer = network.add_convolution_nd(four.get_output(0), 1, (1, 1), np.full(3, 2, "f"), np.ones(1, "f"))
    layer.stride_nd = (1, 1)
    part = network.add_slice(layer.get_output(0), (0, 0, 1, 0), (2, 1, 2, 1), (1, 1, 1, 1))
    three = network.add_shuffle(part.get_output(0))
    three.reshape_dims = (2, 1, 2)
    return three
def softmax():
    layer = network.add_softmax(a)
    layer.axes = 1 << 2
    return layer
def shuffle():
    layer = network.add_shuffle(a)
    layer.first_transpose, layer.reshape_dims, layer.second_transpose = (2, 0, 1), (4, 6), (1, 0)
    return layer
def concatenation():
    layer = network.add_concatenation([a, b])
    layer.axis = 2
    return layer
def quantized():
    scale = network.add_constant((), np.array(0.5, "f")).get_output(0)
    quantize = network.add_quantize(a, scale, trt.int8)
    return network.add_dequantize(quantize.get_output(0), scale, trt.float32)
"""


@ON_11
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_added_through_the_api_agrees_with_numpy(in_fake: RunIn, name: str) -> None:
    call, expected = LAYERS[name]
    said = in_fake(
        NETWORK + HELPERS + f"result = value({call})\nexpected = np.asarray({expected})\n"
        "print(result.shape == expected.shape, bool(np.allclose(result, expected, atol=1e-5)))"
    )
    assert said.split() == ["True", "True"]


def test_layers_are_returned_as_ilayer_until_their_class_is_set(in_fake: RunIn) -> None:
    said = in_fake(
        NETWORK
        + """
added = network.add_activation(a, trt.ActivationType.TANH)
added.name = "squash"
found = network.get_layer(0)
print(type(added).__name__, type(found).__name__, found.name, found.type.name, hasattr(found, "alpha"))
found.__class__ = trt.IActivationLayer
print(found.type.name, found.get_input(0) is a, found.get_output(0) is added.get_output(0), network.num_layers)
"""
    )
    assert said.splitlines() == ["IActivationLayer ILayer squash ACTIVATION False", "TANH True True 1"]


def test_a_parsed_network_accepts_new_outputs_and_layers(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
builder, network, _, _ = parsed()
inner, last = network[0].get_output(0), network.get_output(0)
network.mark_output(inner)
doubled = network.add_elementwise(last, last, trt.ElementWiseOperation.SUM)
doubled.get_output(0).name = "twice"
network.unmark_output(last)
network.mark_output(doubled.get_output(0))
print([network.get_output(i).name for i in range(network.num_outputs)], inner.is_network_output, last.is_network_output)
engine = builder.build_engine_with_config(network, configured(builder))
print([engine[i] for i in range(engine.num_io_tensors)], tuple(engine.get_tensor_shape("twice")))
"""
    )
    assert said.splitlines() == ["['c', 'twice'] True False", "['x', 'c', 'twice'] (-1, 4, 6, 6)"]


def test_the_type_of_a_tensor_can_be_set_on_10_only(in_fake: RunIn, trt_version: int) -> None:
    said = in_fake(
        NETWORK
        + """
try:
    a.dtype = trt.float16
    print(a.dtype.name)
except AttributeError:
    print("read-only")
print(hasattr(network[0] if network.num_layers else network.add_identity(a), "precision"), network.get_flag(
    trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
"""
    )
    assert said.splitlines() == [("HALF", "read-only")[trt_version == 11], f"{trt_version == 10} False"]


def test_dims_behave_like_the_real_ones(in_fake: RunIn) -> None:
    said = in_fake(
        """
import tensorrt as trt
dims = trt.Dims((2, 3))
print(dims == (2, 3), dims == [2, 4], tuple(dims), dims[0], dims[:1], len(dims), str(dims), trt.volume(dims))
try:
    dims == trt.Dims((2, 3))
except TypeError:
    print("refused")
print(int(trt.BuilderFlag.REFIT), trt.BuilderFlag.REFIT == 4, trt.BuilderFlag.REFIT.name, repr(trt.DataType.HALF))
print(trt.Logger.ERROR < trt.Logger.INFO, hasattr(trt.DataType.HALF, "alien"))
for wrong in ("trt.Logger.ERROR < 3", "trt.DataType.HALF < trt.DataType.INT8", "1 << trt.BuilderFlag.REFIT"):
    try:
        eval(wrong)
    except TypeError:
        print("refused")
print(trt.DataType.INT4.itemsize, trt.nptype(trt.float16).__name__, trt.float32 == trt.DataType.FLOAT)
"""
    )
    assert said.splitlines() == [
        "True False (2, 3) 2 (2,) 2 (2, 3) 6", "refused", "4 False REFIT <DataType.HALF: 1>", "True False",
        "refused", "refused", "refused", "0.5 float16 True",
    ]  # fmt: skip


def test_a_layer_from_an_onnx_node_has_its_attributes(in_fake: RunIn) -> None:
    said = in_fake(
        MODEL
        + """
_, network, _, _ = parsed()
layer = network[0]
layer.__class__ = trt.IConvolutionLayer
print(layer.num_output_maps, layer.kernel_size_nd, layer.stride_nd, layer.pre_padding, layer.num_groups)
print(bool(np.array_equal(layer.kernel.reshape(weights.shape), weights)), layer.bias is None)
relu = network[1]
relu.__class__ = trt.IActivationLayer
print(relu.type.name, relu.metadata)
"""
    )
    assert said.splitlines() == ["4 (3, 3) (1, 1) (0, 0) 1", "True True", "RELU [ONNX Layer: relu]"]
