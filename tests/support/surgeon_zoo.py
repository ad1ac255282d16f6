"""Models for the surgeon: what there is to cut and clean, what tools trip over, and those of `foldable`."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support import bad_models, models
from support.foldable import (
    constant_chain,
    constants_in_bodies,
    constants_of_all_kinds,
    decided_if,
    expanding,
    nested_ifs,
    partly_dynamic_shapes,
    quantised,
    shapes_in_floats,
    sliced_shape,
    static_shapes,
)
from support.models import from_text

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Maker = Callable[[], onnx.ModelProto]


def optional_inputs() -> onnx.ModelProto:
    """Clip and Resize with inputs left out; a constant Clip among them."""
    model = from_text(
        """optional (float[1,1,4,4] x) => (float[1,1,8,8] y)
            <float top = {0.9}, float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
            [limit] c = Clip(x, , top)
            [known] k = Clip(w, , top)
            [add] a = Add(c, k)
            [grow] y = Resize<mode = "nearest">(a, , scales)
        }"""
    )
    return models.with_weights(model, w=np.linspace(0, 2, 16, dtype=np.float32).reshape(1, 1, 4, 4))


def left_out_bias() -> onnx.ModelProto:
    """LayerNormalization whose bias is "": onnxruntime 1.30 dies of it where it optimises, and Polygraphy with it."""
    model = from_text("norm (float[2,4] x) => (float[2,4] y) { [norm] n = LayerNormalization(x, s) [act] y = Relu(n) }")
    model.graph.node[0].input.append("")
    return models.with_weights(model, s=np.linspace(0.5, 2, 4, dtype=np.float32))


def _lstm(model: onnx.ModelProto) -> onnx.ModelProto:
    """With weights of a cell: 4 values in, 3 hidden."""
    shapes = {"k": (5, 2, 4), "w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 24), "h0": (1, 2, 3)}
    random = np.random.default_rng(0)
    read = {name for node in model.graph.node for name in node.input}
    return models.with_weights(
        model, **{n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items() if n in read}
    )


def left_out_outputs() -> onnx.ModelProto:
    """An LSTM of which the last hidden state alone is wanted, lengths and the initial cell left out."""
    return _lstm(
        from_text(
            """lstm (float[5,2,4] x) => (float[1,2,3] y) {
                [cell] , h = LSTM<hidden_size = 3>(x, w, r, b, , h0, )
                [act] y = Relu(h)
            }"""
        )
    )


def constant_with_left_out_outputs() -> onnx.ModelProto:
    """The same of a constant, beside another constant: Polygraphy folds neither."""
    return _lstm(
        from_text(
            """known (float[1,2,3] x) => (float[1,2,3] y, float[1,2,3] z) <float one = {1.0}, float two = {2.0}> {
                [cell] , h = LSTM<hidden_size = 3>(k, w, r, b, , h0, )
                [sum] y = Add(h, x)
                [three] t = Add(one, two)
                [times] z = Mul(x, t)
            }"""
        )
    )


def without_shapes() -> onnx.ModelProto:
    """No shapes of outputs or inner tensors, no names of nodes."""
    model = models.conv_net()
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for node in model.graph.node:
        node.name = ""
    return model


def unsorted() -> onnx.ModelProto:
    """Nodes in the wrong order, with something to fold."""
    model = constant_chain()
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def duplicate_names() -> onnx.ModelProto:
    """All nodes have one name."""
    model = static_shapes()
    for node in model.graph.node:
        node.name = "same"
    return model


def weights_as_inputs() -> onnx.ModelProto:
    """IR version 3: every weight is a graph input too."""
    model = constant_chain()
    model.ir_version = 3
    model.opset_import[0].version = 9
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model


def defaults() -> onnx.ModelProto:
    """A weight that is an input too, so that the caller may override it: it is no constant."""
    model = from_text(
        """defaults (float[4] x, float[4] w) => (float[4] y)
            <float[4] w = {1.0, 2.0, 3.0, 4.0}, float[4] b = {1.0, 1.0, 1.0, 1.0}> {
            [twice] v = Add(w, w)
            [sum] c = Add(b, b)
            [mul] m = Mul(x, v)
            [add] y = Add(m, c)
        }"""
    )
    return model


def functions() -> onnx.ModelProto:
    """A local function that computes with constants, called with a constant and with an input."""
    return onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> {
            [known] k = local.Scale(w)
            [call] s = local.Scale(x)
            [sum] y = Add(k, s)
        }
        <domain: "local", opset_import: ["" : 21]>
        Scale (a) => (b) {
            [c] k = Constant<value = float[1] {2.0}>()
            [d] k2 = Mul(k, k)
            [inside] b = Mul(a, k2)
        }"""
    )


def several_outputs() -> onnx.ModelProto:
    """A constant split into three, of which one part is not used; a constant that is an output."""
    model = from_text(
        """split (float[2] x) => (float[2] y, float[2] z) <int64[3] sizes = {2, 2, 2}> {
            [split] a, b, c = Split<axis=0>(w, sizes)
            [use] y = Add(x, a)
            [out] z = Neg(c)
        }"""
    )
    return models.with_weights(model, w=np.arange(6, dtype=np.float32))


def large_weights() -> onnx.ModelProto:
    """Weights of 64 KiB, one of them transposed before it is used."""
    random = np.random.default_rng(0)
    model = from_text(
        """large (float[2,128] x) => (float[2,128] y) {
            [turn] t = Transpose<perm=[1,0]>(w0)
            [first] h = MatMul(x, t)
            [act] a = Relu(h)
            [second] y = MatMul(a, w1)
        }"""
    )
    weights = {f"w{i}": random.standard_normal((128, 128)).astype(np.float32) / 11 for i in range(2)}
    return models.with_weights(model, **weights)


def tail() -> onnx.ModelProto:
    """Nodes and weights that no output needs."""
    model = models.mlp()
    model.graph.node.append(helper.make_node("Relu", ["h0"], ["unused"], "unused"))
    model.graph.node.append(helper.make_node("Mul", ["unused", "unused_weight"], ["more"], "more"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(16, np.float32), "unused_weight"))
    return model


MAKERS: Mapping[str, Maker] = {
    maker.__name__: maker
    for maker in (
        *(constant_chain, constants_of_all_kinds, static_shapes, partly_dynamic_shapes, sliced_shape),
        *(shapes_in_floats, decided_if, nested_ifs, constants_in_bodies, quantised, expanding),
        *(optional_inputs, left_out_bias, left_out_outputs, constant_with_left_out_outputs),
        *(without_shapes, unsorted, duplicate_names, weights_as_inputs, defaults, functions),
        *(several_outputs, large_weights, tail),
        *(models.mlp, models.conv_net, models.if_model, models.loop_model, models.scan_model, models.dynamic_model),
        bad_models.old_ir,
    )
}
"""Name -> maker. Those named in EXTERNAL are saved with external weights, too."""
EXTERNAL = ("mlp", "conv_net", "large_weights")


def write_all(folder: Path) -> dict[str, Path]:
    """Write every model, and those with external weights as "<name>_external"; name -> path."""
    paths = {}
    for name, maker in MAKERS.items():
        paths[name] = models.save(maker(), folder / f"{name}.onnx")
    for name in EXTERNAL:
        (folder / name).mkdir(exist_ok=True)
        place = folder / name / "external.onnx"
        paths[f"{name}_external"] = models.with_external_weights(MAKERS[name](), place)
    return paths
