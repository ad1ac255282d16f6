"""Models with constants to fold."""

import numpy as np
import onnx
from support import models
from support.models import from_text


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
