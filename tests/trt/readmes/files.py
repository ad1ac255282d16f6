"""The models, scripts and data that the lines of the READMEs name: small ones of our own, under the names there."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.parser import parse_model
from trt.readmes.scripts import SCRIPTS

_CONV = "[conv{0}] c{0} = Conv <kernel_shape=[3,3], pads=[1,1,1,1]> ({1}, w{0}, b{0}) [relu{0}] r{0} = Relu(c{0})"
_SUM = "(float[{0}] x0, float[{0}] x1) => (float[{0}] Y) <float[1] a = {{2.0}}, float[1] b = {{3.0}}>"
_TEXTS = {
    "identity.onnx": "test_identity (float[1,1,2,2] x) => (float[1,1,2,2] y) { y = Identity(x) }",
    "run/01/dynamic_identity.onnx": """d (float[1,2,H,W] X) => (float[1,2,H,W] Y) {
        intermediate = Identity(X) Y = Identity(intermediate) }""",
    "dynamic_identity.onnx": "d (float[1,2,H,W] X) => (float[1,2,H,W] Y) { Y = Identity(X) }",
    "convert/03/dynamic_identity.onnx": "d (float[N,3,28,28] X) => (float[N,3,28,28] Y) { Y = Identity(X) }",
    "add_infinity.onnx": "adds (float[1] A) => (float[1] B) { B = Add(A, inf) }",
    "needs_constraints.onnx": """n (float[64,64] x) => (float[64,64] out) <float max = {65504.0}> {
        [MatMul_0] flipped = MatMul(x, rot) [Add] more = Add(flipped, max) [Sub] less = Sub(more, max)
        [MatMul_1] out = MatMul(less, rot) }""",
    "model.onnx": f"""m {_SUM.format("1,3,224,224")} {{
        [Mul] mul_out = Mul(a, x1) [Add] add_out = Add(mul_out, b) [Last] Y = Add(x0, add_out) }}""",
    "debug/02/model.onnx": f"""m {_SUM.format("N,3,H,W")} {{
        [Shape] shape = Shape(x1) [Reshape] same = Reshape(x1, shape)
        [Mul] mul_out = Mul(a, same) [Add] add_out = Add(mul_out, b) [Last] Y = Add(x0, add_out) }}""",
    "how-to/model.onnx": f"""m {_SUM.format("N,3,H,W")} {{
        [Mul] mul_out = Mul(a, x1) [Add] add_out = Add(mul_out, b) [Last] Y = Add(x0, add_out) }}""",
    "surgeon/02/model.onnx": """m (float[1] input) => (float[1] output)
        <float[1] a = {1}, float[1] b = {2}, float[1] d = {3}> {
        c = Add(a, b) e = Add(c, d) output = Add(input, e) }""",
    "surgeon/04/model.onnx": """m (int64 limit) => (int64[N] out) <int64 zero = {0}, int64 one = {1}> {
        [Same] same = Identity(limit) [Range] values = Range(zero, same, one) [Abs] out = Abs(values) }""",
    "inspect/07/model.onnx": "m (float[1] x, float[4] y) => (float[4] z) { z = Add(x, y) }",
    "inspect/08/model.onnx": """m (float[4] x) => (float[4] y) {
        a = Identity(x) b = Identity(a) c = Fake(b) y = Identity(c) }""",
    "nested_local_function.onnx": """m (float[4] x) => (float[4] y) {
        t = Identity(x) [onnx_graphsurgeon_node_1] y = local.OuterFunction(t) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]> OuterFunction (x) => (y) {
        [nested_node_fake_1] t = Fake_1(x) [onnx_graphsurgeon_node_1] y = local.NestedLocalFake2(t) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]> NestedLocalFake2 (x) => (y) {
        [nested_node_fake_2] t = Fake_2(x) y = Identity(t) }""",
    "toy_subgraph.onnx": """m (float[4] i1) => (float[4] o1, float[4] o2) {
        [n1] t = O(i1) [n2] a = A(i1) [n3] b = B(i1) [n4] c = C <x = 1> (a, b) [n5] o1 = D(c) [n6] o2 = E(c) }""",
    "original.onnx": "m (float[4] x) => (float[4] y) { t = Identity(x) y = Abs(t) }",
    "replaced.onnx": "m (float[4] x) => (float[4] y) { y = Abs(x) }",
    "attention.onnx": """m (float[S,8] input) => (float[S,8] output) {
        [to_q] q = MatMul(input, wq) [to_k] k = MatMul(input, wk) [to_v] v = MatMul(input, wv)
        [turn] kt = Transpose <perm=[1,0]> (k) [scores] s = MatMul(q, kt) [soft] p = Softmax(s)
        [mix] output = MatMul(p, v) }""",
    "conv_relu_test_model.onnx": "m (float[1,4,8,8] input) => (float[1,4,8,8] r2) {"
    + " ".join(_CONV.format(n, f"r{n - 1}" if n else "input") for n in range(3))
    + "}",
    "no_op_reshape.onnx": """m (float[2,2] x) => (float[2,2] y) <int64[2] shape = {2,2}> {
        [reshape] y = Reshape(x, shape) }""",
    "bad_graph.onnx": """g (float[1,3] A, float[4,4] B, float[3,4] C, float[4,1] D, float[1,4] E, float[4,1] F,
        int64[4,4] G) => (float[1,1] o1, float o2, float o3, int64[2,N] o4) {
        [MatMul_0] unused = MatMul(A, B) [Add_0] o2 = Add(C, D) [MatMul_1] o1 = MatMul(E, F)
        [MatMul_3] o3 = MatMul(C, E) [cast_to_int64] cast = Cast <to=7> (G) [NonZero] o4 = NonZero(cast) }""",
}
_WEIGHTS = {
    "needs_constraints.onnx": {"rot": np.eye(64, dtype=np.float32)[::-1].copy()},
    "add_infinity.onnx": {"inf": np.array([np.inf], np.float32)},
    "attention.onnx": {f"w{name}": np.eye(8, dtype=np.float32) for name in "qkv"},
    "conv_relu_test_model.onnx": {f"w{n}": np.full((4, 4, 3, 3), 0.1, np.float32) for n in range(3)}
    | {f"b{n}": np.zeros(4, np.float32) for n in range(3)},
}
_SHARD = {"name": "input", "seq_len_idx": 0, "rank": 2, "polygraphy_class": "ShardTensor"}
_HINTS = {
    "parallelism": "CP",
    "attention_layers": [
        {"q": "q", "gather_kv": True, "gather_q": False, "polygraphy_class": "AttentionLayerHint"}
    ],
    "dist_collectives": {
        "group_size": 0, "root": -1, "nb_rank": 2, "reduce_op": "max", "groups": [],
        "polygraphy_class": "DistCollective",
    },
    "inputs": [_SHARD], "outputs": [_SHARD | {"name": "output"}], "k_seq_len_idx": 0, "v_seq_len_idx": 0,
    "kv_rank": None, "polygraphy_class": "ShardHints",
}  # fmt: skip


def write(page: str, name: str, folder: Path) -> None:
    """Write a file that a page has of its own."""
    path = (folder / name).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    short = path.name
    if path.suffix == ".onnx":
        onnx.save(_model(page, short), path)
    elif short == "hint.json":
        path.write_text(json.dumps(_HINTS))
    elif short == "destroyer.py":
        path.write_bytes(Path(__file__).with_name(short).read_bytes())
    elif short == "entry_points.txt":
        path.write_text("[polygraphy.run.plugins]\nreshape-destroyer = destroyer:groups\n")
    elif path.suffix == ".pb":
        path.write_bytes(b"\n\x07\n\x01x\x12\x02Id")
    else:
        path.write_text(_of(page, short, SCRIPTS))


def _of(page: str, name: str, known: dict[str, str]) -> str:
    """What is known of a file: that of the page, if it has its own, under `folder/number/name`."""
    own = (key for key in known if key.endswith(f"/{name}") and key.removesuffix(f"/{name}") in page)
    return known[next(own, name)]


def _model(page: str, name: str) -> onnx.ModelProto:
    text = _of(page, name, _TEXTS)
    opset = 8 if name == "identity.onnx" else 17
    model = parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]> {text}')
    for weight, value in _WEIGHTS.get(name, {}).items():
        model.graph.initializer.append(numpy_helper.from_array(value, weight))
    if name == "bad_graph.onnx":
        model.graph.name = ""
    return model
