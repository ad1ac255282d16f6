"""Models for the surgeon: what there is to fold, cut and clean, and what tools trip over."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support import bad_models, models
from support.models import from_text

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Maker = Callable[[], onnx.ModelProto]


def constant_chain() -> onnx.ModelProto:
    """A weight that is scaled, transposed and cast before it is used."""
    model = from_text(
        """chain (float[2,4] x) => (float[2,3] y) <float half = {0.5}> {
            [scale] s = Mul(w, half)
            [turn] t = Transpose<perm=[1,0]>(s)
            [double] d = Cast<to=11>(t)
            [single] f = Cast<to=1>(d)
            [use] y = MatMul(x, f)
        }"""
    )
    return models.with_weights(model, w=np.arange(12, dtype=np.float32).reshape(3, 4))


def constants_of_all_kinds() -> onnx.ModelProto:
    """Constant nodes by value, float, floats, int and ints."""
    return from_text(
        """constants (float[4] x) => (float[4] y, int64[2] z) {
            [scalar] a = Constant<value_float = 2.0>()
            [row] b = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()
            [number] i = Constant<value_int = 3>()
            [numbers] j = Constant<value_ints = [4, 5]>()
            [tensor] k = Constant<value = float[4] {4.0, 3.0, 2.0, 1.0}>()
            [m1] p = Mul(x, a)
            [m2] q = Add(p, b)
            [m3] y = Sub(q, k)
            [m4] z = Add(j, i)
        }"""
    )


def static_shapes() -> onnx.ModelProto:
    """Reshape by a shape that is put together from the input's."""
    return from_text(
        """shapes (float[2,3,4] x) => (float[6,4] y)
            <int64 i0 = {0}, int64 i1 = {1}, int64[1] axis = {0}, int64[1] m = {-1}> {
            [shape] s = Shape(x)
            [batch] b = Gather<axis=0>(s, i0)
            [rows] r = Gather<axis=0>(s, i1)
            [both] n = Mul(b, r)
            [wide] u = Unsqueeze(n, axis)
            [target] t = Concat<axis=0>(u, m)
            [reshape] y = Reshape(x, t)
        }"""
    )


def partly_dynamic_shapes() -> onnx.ModelProto:
    """The batch is dynamic, the rest is known: Gather(Shape(x), 1) can be folded, Gather(Shape(x), 0) cannot."""
    return from_text(
        """partly (float[batch,3,4] x) => (float[batch,n] y) <int64[1] i0 = {0}, int64[2] rest = {1, 2}> {
            [shape] s = Shape(x)
            [batch] b = Gather<axis=0>(s, i0)
            [others] o = Gather<axis=0>(s, rest)
            [count] c = ReduceProd<keepdims=1>(o)
            [target] t = Concat<axis=0>(b, c)
            [reshape] y = Reshape(x, t)
        }"""
    )


def sliced_shape() -> onnx.ModelProto:
    """Shape with start and end, and a Slice of a Shape."""
    return from_text(
        """sliced (float[2,3,4,5] x) => (int64[2] a, int64[2] b, float[2,3,20] y)
            <int64[1] one = {1}, int64[1] three = {3}, int64[1] m = {-1}, int64[1] zero = {0}, int64[1] two = {2}> {
            [middle] a = Shape<start=1, end=3>(x)
            [shape] s = Shape(x)
            [slice] b = Slice(s, one, three)
            [head] h = Slice(s, zero, two)
            [target] t = Concat<axis=0>(h, m)
            [reshape] y = Reshape(x, t)
        }"""
    )


def shapes_in_floats() -> onnx.ModelProto:
    """A length is halved in floating point, as exporters of Resize do: in integers it would be another one."""
    return from_text(
        """floats (float[batch,7] x) => (int64[2] doubled, int64[2] halved)
            <float[1] two = {2.0}, float[1] half = {0.5}> {
            [shape] s = Shape(x)
            [to_float] f = Cast<to=1>(s)
            [times] d = Mul(f, two)
            [back] doubled = Cast<to=7>(d)
            [part] h = Mul(f, half)
            [back2] halved = Cast<to=7>(h)
        }"""
    )


def decided_if() -> onnx.ModelProto:
    """An If whose condition is a constant; the branches have weights and names of the graph around them."""
    return from_text(
        """decided (float[4] x) => (float[4] y)
            <float[4] w = {1.0, 2.0, 3.0, 4.0}, float[1] one = {1.0}, float[1] two = {2.0}> {
            [before] h = Mul(x, w)
            [compare] c = Less(one, two)
            [scalar] cond = Squeeze(c)
            [choose] z = If (cond) <
                then_branch = yes () => (float[4] a) { [in_then] t = Add(h, w) [more] a = Relu(t) },
                else_branch = no () => (float[4] b) { [in_else] b = Sub(h, x) }
            >
            [after] y = Neg(z)
        }"""
    )


def nested_ifs() -> onnx.ModelProto:
    """A decided If in a branch of a decided If, with the same names inside as in the graph around it."""
    return from_text(
        """nested (float[4] x) => (float[4] y) <bool yes = {1}, bool no = {0}> {
            [before] t = Relu(x)
            [outer] z = If (yes) <
                then_branch = yes () => (float[4] r) {
                    [in_then] a = Neg(t)
                    [inner] r = If (no) <
                        then_branch = yes2 () => (float[4] p) { [p1] p = Abs(a) },
                        else_branch = no2 () => (float[4] q) { [q1] s = Exp(a) [q2] q = Add(s, t) }
                    >
                },
                else_branch = no () => (float[4] b) { [in_else] b = Neg(x) }
            >
            [s1] s = Relu(z)
            [after] y = Add(s, t)
        }"""
    )


def constants_in_bodies() -> onnx.ModelProto:
    """A Loop whose body computes with constants, its own and those around it."""
    return from_text(
        """bodies (int64 trips, float[2] x) => (float[2] last) <bool go = {1}, float[2] w = {1.0, 2.0}> {
            [twice] v = Add(w, w)
            [repeat] last = Loop (trips, go, x) <
                body = step (int64 i, bool keep_in, float[2] s) => (bool keep, float[2] t) {
                    [keep_on] keep = Identity(keep_in)
                    [c] k = Constant<value = float[2] {0.5, 0.25}>()
                    [sum] m = Add(k, v)
                    [half] n = Mul(m, k)
                    [plus] t = Add(s, n)
                }
            >
        }"""
    )


def quantised() -> onnx.ModelProto:
    """QuantizeLinear and DequantizeLinear of a weight: folding must leave them."""
    model = from_text(
        """qdq (float[2,4] x) => (float[2,3] y) <float scale = {0.05}, int8 zero = {0}, float two = {2.0}> {
            [twice] v = Mul(w, two)
            [q] i = QuantizeLinear(v, scale, zero)
            [dq] f = DequantizeLinear(i, scale, zero)
            [use] y = MatMul(x, f)
        }"""
    )
    return models.with_weights(model, w=np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))


def expanding() -> onnx.ModelProto:
    """A constant that grows to 1 MB, and one number that is computed from it."""
    return from_text(
        """grows (float[1] x) => (float[512,512] y, float m) <int64[2] size = {512, 512}, float[1] one = {3.0}> {
            [grow] g = Expand(one, size)
            [add] y = Add(g, x)
            [mean] m = ReduceMean<keepdims=0>(g)
        }"""
    )


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
