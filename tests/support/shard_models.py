"""Models that are split over GPUs, and hints for them in Polygraphy's JSON."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper
from support.models import from_text, with_weights

EYE = np.eye(8, dtype=np.float32)
_LAYER = """[q{n}] q{n} = MatMul({x}, w) [k{n}] k{n} = MatMul({x}, w2) [v{n}] v{n} = MatMul({x}, w)
    [t{n}] kt{n} = Transpose <perm=[0,2,1]> (k{n}) [s{n}] s{n} = MatMul(q{n}, kt{n}) [p{n}] p{n} = Softmax(s{n})
    [o{n}] o{n} = MatMul(p{n}, v{n}) [a{n}] {y} = Add(o{n}, {x})"""


def _weights(*shapes: tuple[str, int, int]) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {name: (random.random((rows, columns)) - 0.5).astype(np.float32) for name, rows, columns in shapes}


def layers(names: str = "") -> onnx.ModelProto:
    """x [2, sequence_length, 8] → two attention layers → y, and x → side."""
    first, second = _LAYER.format(n=0, x="x", y="h"), _LAYER.format(n=1, x="h", y="y")
    text = f"""m (float[2,sequence_length,8] x) => (float[2,sequence_length,8] y, float[2,sequence_length,8] side) {{
        {first} {second} [last] side = Relu(x) }}"""
    model = with_weights(from_text(text, opset=17), **_weights(("w", 8, 8), ("w2", 8, 8)))
    for node in model.graph.node if names else []:
        node.name = names if "q" in node.output[0] else ""
    return model


def scaled() -> onnx.ModelProto:
    """Queries and keys multiplied by the square root of one over the square root of their size."""
    text = """m (float[2,4,8] x) => (float[2,4,8] y) <int64[1] st = {2}, int64[1] en = {3}, float[1] one = {1.0}> {
        [q] q = MatMul(x, w) [k] k = MatMul(x, w) [v] v = MatMul(x, w) [kt] kt = Transpose <perm=[0,2,1]> (k)
        [sh] sh = Shape(q) [sl] sl = Slice(sh, st, en) [c1] c1 = Cast <to=1> (sl) [r1] r1 = Sqrt(c1)
        [c2] c2 = Cast <to=1> (r1) [dv] dv = Div(one, c2) [c3] c3 = Cast <to=1> (dv) [r2] r2 = Sqrt(c3)
        [r3] r3 = Sqrt(c3) [mq] mq = Mul(q, r2) [mk] mk = Mul(kt, r3) [s] s = MatMul(mq, mk) [p] p = Softmax(s)
        [o] y = MatMul(p, v) }"""
    return with_weights(from_text(text, opset=17), w=EYE)


def shared() -> onnx.ModelProto:
    """Two layers of the same keys and values."""
    text = """m (float[2,4,8] x) => (float[2,4,8] y) {
        [q0] q0 = MatMul(x, w) [q1] q1 = MatMul(x, w2) [k] k = MatMul(x, w) [v] v = MatMul(x, w2)
        [t] kt = Transpose <perm=[0,2,1]> (k) [s0] s0 = MatMul(q0, kt) [p0] p0 = Softmax(s0) [o0] o0 = MatMul(p0, v)
        [s1] s1 = MatMul(q1, kt) [p1] p1 = Softmax(s1) [o1] o1 = MatMul(p1, v) [y] y = Add(o0, o1) }"""
    return with_weights(from_text(text, opset=17), **_weights(("w", 8, 8), ("w2", 8, 8)))


def branching() -> onnx.ModelProto:
    """The values are read by the branches of an If too."""
    text = """m (float[2,4,8] x, bool c) => (float[2,4,8] y, float[2,4,8] z) {
        [q] q = MatMul(x, w) [k] k = MatMul(x, w) [v] v = MatMul(x, w) [t] kt = Transpose <perm=[0,2,1]> (k)
        [s] s = MatMul(q, kt) [p] p = Softmax(s) [y] y = MatMul(p, v)
        [i] z = If(c) <then_branch = a () => (float[2,4,8] o1) { [r] o1 = Relu(v) },
            else_branch = b () => (float[2,4,8] o2) { [n] o2 = Neg(v) }> }"""
    return with_weights(from_text(text, opset=17), w=EYE)


def plugin(joined: bool = False) -> onnx.ModelProto:
    """An AttentionPlugin of 4 heads, its queries, keys and values joined or not, and a gated MLP."""
    read = "qkv, past, l, l, l, l" if joined else "q, k, v, past"
    more = "[cat] qkv = Concat <axis=-1> (q, k, v)" if joined else ""
    text = f"""m (float[1,S,8] x, float[1,2,4,16,2] past, int64[1] l) => (float[1,S,8] y, float[1,2,4,17,2] present) {{
        [nq] q = MatMul(x, wq) [nk] k = MatMul(x, wk) [nv] v = MatMul(x, wv) {more}
        [att] a, present = AttentionPlugin <num_q_heads=4, num_kv_heads=4> ({read})
        [no] o = MatMul(a, wo) [res] h = Add(o, x) {MLP} [y] y = Add(d, h) }}"""
    sizes = [(f"w{name}", 8, 8) for name in "qkvo"]
    return with_weights(from_text(text, opset=17), **_weights(*sizes, *MLP_WEIGHTS))


MLP = """[gate] g0 = MatMul(h, wg) [sg] sg = Sigmoid(g0) [m1] g1 = Mul(g0, sg) [up] u = MatMul(h, wu)
    [m2] mm = Mul(g1, u) [dn] d = MatMul(mm, wd)"""
MLP_WEIGHTS = (("wg", 8, 16), ("wu", 8, 16), ("wd", 16, 8))


def mlp() -> onnx.ModelProto:
    """A gated MLP alone."""
    text = f"m (float[1,3,8] h) => (float[1,3,8] d) {{ {MLP} }}"
    return with_weights(from_text(text, opset=17), **_weights(*MLP_WEIGHTS))


def fp4() -> onnx.ModelProto:
    """An AttentionPlugin with weights in FP4, their scales in FP8, of 16 values each."""
    nodes, weights, random = [], [], np.random.default_rng(1)
    for name, read, made in (("q", "x", "q"), ("k", "x", "k"), ("v", "x", "v"), ("o", "a", "y")):
        values = random.integers(-3, 4, (32, 32)).astype(ml_dtypes.float4_e2m1fn)
        scales = random.random((32, 2)).astype(ml_dtypes.float8_e4m3fn)
        arrays = {"w": values, "s": scales, "g": np.array(0.5, np.float32)}
        weights += [numpy_helper.from_array(array, f"{name}_{kind}") for kind, array in arrays.items()]
        nodes += [
            helper.make_node("DequantizeLinear", [f"{name}_s", f"{name}_g"], [f"{name}_d"], f"{name}1"),
            helper.make_node("DequantizeLinear", [f"{name}_w", f"{name}_d"], [f"{name}_f"], f"{name}2", axis=-1,
                             block_size=16),
            helper.make_node("Transpose", [f"{name}_f"], [f"{name}_t"], f"{name}3", perm=[1, 0]),
            helper.make_node("MatMul", [read, f"{name}_t"], [made], f"{name}4"),
        ]  # fmt: skip
    heads = {"num_q_heads": 4, "num_kv_heads": 2}
    nodes.insert(-4, helper.make_node("AttentionPlugin", ["q", "k", "v", "past"], ["a", "present"], "att", **heads))
    shapes = {"x": [1, "S", 32], "past": [1, 2, 2, 4, 8], "y": [1, "S", 32], "present": [1, 2, 2, 5, 8]}
    ends = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "m", ends[:2], ends[2:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def bare_encoder() -> onnx.ModelProto:
    """The demo's encoder, its attention without the division that stands between MatMul and Softmax."""
    from layerwise._tool.surgery.demo import demo_model

    model = demo_model()
    scores = {node.output[0]: node for node in model.graph.node if node.name.endswith("/self/Div")}
    for node in model.graph.node:
        node.input[:] = [scores[name].input[0] if name in scores else name for name in node.input]
    for node in scores.values():
        model.graph.node.remove(node)
    return model


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "layers": layers, "unnamed": lambda: layers("same"), "scaled": scaled, "shared": shared, "branching": branching,
    "plugin": plugin, "joined": lambda: plugin(joined=True), "mlp": mlp, "fp4": fp4, "encoder": bare_encoder,
}  # fmt: skip


def layer(q: str, kv: bool = True, gather_q: bool = False, replace: Any = None) -> dict[str, Any]:
    return {"q": q, "gather_kv": kv, "gather_q": gather_q, "replace": replace, "polygraphy_class": "AttentionLayerHint"}


def fused(**shuffles: list[int]) -> dict[str, Any]:
    return {"is_causal": True, "nb_rank": 2, **shuffles, "polygraphy_class": "FusedAttention"}


def end(name: str, axis: int = 0, rank: int | None = None) -> dict[str, Any]:
    return {"name": name, "seq_len_idx": axis, "rank": rank, "polygraphy_class": "ShardTensor"}


def hints(
    *layers: dict[str, Any], inputs: list[Any] | None = None, outputs: list[Any] | None = None, ranks: int = 2,
    places: tuple[int, int, int | None] = (2, 1, 3), parallelism: str = "CP",
) -> dict[str, Any]:  # fmt: skip
    """places: of the sequence in keys and values, and their rank."""
    collectives = {"group_size": 0, "root": -1, "nb_rank": ranks, "reduce_op": "max", "groups": [0, 1]}
    return {
        "parallelism": parallelism, "attention_layers": [*layers],
        "dist_collectives": {**collectives, "polygraphy_class": "DistCollective"},
        "inputs": inputs or [], "outputs": outputs or [],
        "k_seq_len_idx": places[0], "v_seq_len_idx": places[1], "kv_rank": places[2], "polygraphy_class": "ShardHints",
    }  # fmt: skip
