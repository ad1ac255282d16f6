"""Makers of small real models, in ONNX's text form, and ONNX's own node tests."""

import functools
import struct
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser

Array = NDArray[Any]


def from_text(body: str, *, opset: int = 21, ir: int = 10) -> onnx.ModelProto:
    """Parse a graph in ONNX's text form."""
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\n{body}')


def save(model: onnx.ModelProto, path: Path) -> Path:
    """Write the model, external data inlined, and return the path."""
    path.write_bytes(model.SerializeToString())
    return path


def with_weights(model: onnx.ModelProto, **weights: Array) -> onnx.ModelProto:
    """Add initializers."""
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def mlp(width: int = 16, layers: int = 3, seed: int = 0) -> onnx.ModelProto:
    """x [batch, width] float32 → y [batch, width]; nodes `/fc0/MatMul`, `/fc0/Add`, `/fc0/Relu`, …"""
    random = np.random.default_rng(seed)
    nodes, weights, x = [], [], "x"
    for i in range(layers):
        out = "y" if i == layers - 1 else f"h{i}"
        nodes += [
            helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"], f"/fc{i}/MatMul"),
            helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"], f"/fc{i}/Add"),
            helper.make_node("Relu", [f"a{i}"], [out], f"/fc{i}/Relu"),
        ]
        weight = random.standard_normal((width, width)) * np.sqrt(2 / width)
        weights += [
            numpy_helper.from_array(weight.astype(np.float32), f"w{i}"),
            numpy_helper.from_array(random.standard_normal(width).astype(np.float32) * 0.1, f"b{i}"),
        ]
        x = out
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", width])],
        weights,
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def conv_net(channels: int = 8, size: int = 16, seed: int = 0) -> onnx.ModelProto:
    """image [1, 3, size, size] → scores [1, 4]: convolutions, BatchNormalization, pooling, a dense layer."""
    random = np.random.default_rng(seed)
    model = from_text(
        f"""net (float[1,3,{size},{size}] image) => (float[1,4] scores) {{
            [conv0] c0 = Conv<pads=[1,1,1,1]>(image, w0)
            [bn0] n0 = BatchNormalization(c0, scale0, bias0, mean0, var0)
            [relu0] r0 = Relu(n0)
            [conv1] c1 = Conv<pads=[1,1,1,1]>(r0, w1, b1)
            [add] s = Add(c1, r0)
            [relu1] r1 = Relu(s)
            [pool] p = GlobalAveragePool(r1)
            [flatten] f = Flatten(p)
            [fc] scores = Gemm<transB=1>(f, w2, b2)
        }}"""
    )

    def draw(*shape: int, scale: float = 1.0, around: float = 0.0) -> Array:
        return (around + scale * random.standard_normal(shape)).astype(np.float32)

    c = channels
    return with_weights(
        model,
        w0=draw(c, 3, 3, 3, scale=0.27),
        scale0=draw(c, scale=0.1, around=1),
        bias0=draw(c, scale=0.1),
        mean0=draw(c, scale=0.1),
        var0=np.abs(draw(c)) + 0.5,
        w1=draw(c, c, 3, 3, scale=0.17),
        b1=draw(c, scale=0.01),
        w2=draw(4, c, scale=0.5),
        b2=draw(4, scale=0.01),
    )


def if_model() -> onnx.ModelProto:
    """cond, x → y: a body reads `h` and the weight `w` of the graph around it."""
    return from_text(
        """branch (bool cond, float[4] x) => (float[4] y) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
            [before] h = Mul(x, w)
            [choose] y = If (cond) <
                then_branch = yes () => (float[4] a) { [in_then] a = Add(h, w) },
                else_branch = no () => (float[4] b) { [in_else] b = Sub(h, x) }
            >
        }"""
    )


def loop_model() -> onnx.ModelProto:
    """trips, x → last, all [trips, 2]: doubles and adds the outer `x` in each trip."""
    return from_text(
        """loop (int64 trips, float[2] x) => (float[2] last, float[n, 2] every) <bool go = {1}> {
            [start] first = Identity(x)
            [repeat] last, every = Loop (trips, go, first) <
                body = step (int64 i, bool keep_in, float[2] v) => (bool keep, float[2] w, float[2] row) {
                    [keep_on] keep = Identity(keep_in)
                    [twice] t = Add(v, v)
                    [plus] w = Add(t, x)
                    [copy] row = Identity(w)
                }
            >
        }"""
    )


def scan_model() -> onnx.ModelProto:
    """state [2], xs [n, 2] → final, sums: a running sum by Scan."""
    return from_text(
        """scan (float[2] state, float[n, 2] xs) => (float[2] final, float[n, 2] sums) {
            [running] final, sums = Scan <num_scan_inputs = 1,
                body = add (float[2] s, float[2] x) => (float[2] t, float[2] out) {
                    [sum] t = Add(s, x)
                    [copy] out = Identity(t)
                }
            > (state, xs)
        }"""
    )


def bf16_model() -> onnx.ModelProto:
    """x [2, 3] bfloat16 → y bfloat16 (the same), z float32."""
    return from_text(
        """bf16 (bfloat16[2,3] x) => (bfloat16[2,3] y, float[2,3] z) {
            [same] y = Identity(x)
            [wide] z = Cast<to=1>(x)
        }"""
    )


def string_model() -> onnx.ModelProto:
    """x [n] strings → y (the same)."""
    return from_text("strings (string[n] x) => (string[n] y) { [same] y = Identity(x) }")


def sequence_model() -> onnx.ModelProto:
    """x [2] → y a sequence of two tensors, z [2]."""
    return from_text(
        """seq (float[2] x) => (seq(float[2]) y, float[2] z) {
            [double] z = Add(x, x)
            [pair] y = SequenceConstruct(x, z)
        }"""
    )


def dynamic_model() -> onnx.ModelProto:
    """x [batch, seq] → y [batch, kept]: the columns where the first row is positive."""
    return from_text(
        """dynamic (float[batch, seq] x) => (float[batch, kept] y) <int64[1] zero = {0}, int64 row = {0}> {
            [first] r = Gather<axis=0>(x, row)
            [sign] s = Relu(r)
            [where] w = NonZero(s)
            [flat] i = Squeeze(w, zero)
            [take] y = Gather<axis=1>(x, i)
        }"""
    )


def function_model() -> onnx.ModelProto:
    """x [3] → y by a model-local function `local.Twice`."""
    return parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        main (float[3] x) => (float[3] y) { [call] y = local.Twice(x) }
        <domain: "local", opset_import: ["" : 21]>
        Twice (a) => (b) { [inside] b = Add(a, a) }"""
    )


def write_sparse(path: Path, megabytes: int = 400) -> Path:
    """Write a model with an embedded weight w [megabytes·2^18] of zeros, a hole in the file.

    x [1] → y: the first element of w plus x.
    """
    nbytes = megabytes << 20
    model = from_text(
        """big (float[1] x) => (float[1] y) <int64[1] zero = {0}> {
            [pick] p = Gather(w, zero)
            [add] y = Add(p, x)
        }"""
    )
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[nbytes // 4]).SerializeToString()
    tensor += b"\x4a" + _varint(nbytes)  # raw_data, its bytes to follow
    graph = model.graph.SerializeToString() + b"\x2a" + _varint(len(tensor) + nbytes) + tensor  # initializer
    model.ClearField("graph")
    head = model.SerializeToString() + b"\x3a" + _varint(len(graph) + nbytes) + graph
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(len(head) + nbytes)
    return path


def with_external_weights(model: onnx.ModelProto, path: Path, location: str = "weights.bin") -> Path:
    """Save the model with all its weights in one external file beside it."""
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path


class NodeCase(NamedTuple):
    """One of ONNX's own node tests: a one-node model, a feed and the outputs it must give."""

    name: str
    model: onnx.ModelProto
    feed: dict[str, Any]
    outputs: dict[str, Any]
    rtol: float
    atol: float


@functools.cache
def _collected() -> list[Any]:
    """ONNX's node tests as its own generator has them (about 5 s)."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def node_models() -> dict[str, onnx.ModelProto]:
    """The models of ONNX's node tests by name."""
    return {case.name: case.model for case in _collected()}


@functools.cache
def node_cases() -> Mapping[str, NodeCase]:
    """Return ONNX's node tests by name (about 5 s the first time)."""
    return {case.name: case for case in _node_cases()}


def _node_cases() -> Iterator[NodeCase]:
    for case in _collected():
        if not case.data_sets:
            continue
        inputs, outputs = case.data_sets[0]
        names = [value.name for value in case.model.graph.input]
        made = [value.name for value in case.model.graph.output]
        yield NodeCase(
            case.name,
            case.model,
            dict(zip(names, map(_value, inputs), strict=False)),
            dict(zip(made, map(_value, outputs), strict=False)),
            case.rtol,
            case.atol,
        )


def _value(value: Any) -> Any:
    """Some of the tests give TensorProtos and NumPy scalars."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += struct.pack("B", number & 0x7F | 0x80)
        number >>= 7
    return out + struct.pack("B", number)
