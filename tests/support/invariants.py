"""Small models for `check invariants`: each plain, and with one leak between rows planted in it."""

import numpy as np
import onnx
from support.models import from_text, with_weights

PLAIN = {
    "mlp": """g (float[batch, 4] x) => (float[batch, 3] y) {
        h = MatMul(x, w43)  a = Relu(h)  y = Softmax<axis=-1>(a) }""",
    "image": """g (float[batch, 3, 8, 8] x) => (float[batch, 2] y) {
        c = Conv<pads=[1,1,1,1]>(x, w2333)  r = Relu(c)  p = GlobalAveragePool(r)  y = Flatten(p) }""",
    "heads": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        f = Reshape(x, heads)  t = Transpose<perm=[0,2,1,3]>(f)  k = Transpose<perm=[0,2,3,1]>(f)
        s = MatMul(t, k)  a = Softmax<axis=-1>(s)  z = MatMul(a, t)  b = Transpose<perm=[0,2,1,3]>(z)
        y = Reshape(b, joined) }""",
    "gru": """g (float[seq, batch, 4] x) => (float[seq, 1, batch, 3] y) {
        y, last = GRU<hidden_size=3>(x, gw, gr) }""",
    "flat tokens": """g (int64[N, L] ids) => (float[N, L, 3] y) {
        e = Gather(table, ids)  f = Reshape(e, tokens)  h = MatMul(f, w43)  shape = Shape(ids)
        whole = Concat<axis=0>(shape, three)  y = Reshape(h, whole) }""",
    "end of text": """g (int64[batch, seq] ids) => (float[batch, 4] y) {
        e = Gather(table, ids)  shape = Shape(ids)  n = Gather(shape, zero)  at = Range(zero, n, one)
        last = ArgMax<axis=1, keepdims=0>(ids)  a = Unsqueeze(at, one1)  b = Unsqueeze(last, one1)
        places = Concat<axis=1>(a, b)  y = GatherND(e, places) }""",
    "two towers": """g (float[image_batch, 4] a, float[text_batch, 4] b) => (float[image_batch, text_batch] y) {
        t = Transpose<perm=[1,0]>(b)  y = MatMul(a, t) }""",
    "fixed": """g (float[4, 3, 8, 8] x) => (float[4, 2] y) {
        c = Conv(x, w2333)  p = GlobalMaxPool(c)  y = Flatten(p) }""",
    "best of all": """g (float[batch, 4] x) => (float[batch, 4] y) {
        n = Shape(x)  k = Slice(n, zero1, one1)  y, i = TopK<axis=0>(x, k) }""",
    "boxes": """g (float[batch, 6, 4] boxes, float[batch, 1, 6] scores) => (int64[n, 3] found, float[batch, 1, 6] y) {
        found = NonMaxSuppression(boxes, scores, ten, half, none)  y = Sigmoid(scores) }""",
    "pairs": "g (float[n, 4] x, float[n, n] edges) => (float[n, 4] y) { y = MatMul(edges, x) }",
    "unnamed": "g (float[K, 4] x) => (float[K, 4] y) { m = ReduceMean<keepdims=1>(x, zero1)  y = Sub(x, m) }",
}
LEAKS = {
    "softmax over the batch": (
        "g (float[batch, 4] x) => (float[batch, 4] y) { h = Relu(x)  [bad] s = Softmax<axis=0>(h)  y = Mul(s, x) }"
    ),
    "batch norm in training form": """g (float[batch, 3, 4, 4] x) => (float[batch, 3, 4, 4] y) {
        h = Relu(x)  [bad] y, m, v = BatchNormalization<training_mode=1>(h, ones, none3, none3, ones) }""",
    "mean over the batch": """g (float[batch, 3, 4, 4] x) => (float[batch, 3, 4, 4] y) {
        [bad] m = ReduceMean<keepdims=1>(x, zero1)  y = Sub(x, m) }""",
    "reshape over batch and sequence": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        t = Transpose<perm=[1,0,2]>(x)  s = Shape(x)  [bad] r = Reshape(t, s)  y = Relu(r) }""",
    "reshape over batch and sequence, of which a later one makes rows": """g (float[N, L, 4] x) => (float[N, L, 3] y) {
        t = Transpose<perm=[1,0,2]>(x)  s = Shape(x)  [bad] r = Reshape(t, s)  f = Reshape(r, tokens)
        h = MatMul(f, w43)  ends = Slice(s, zero1, two1)  n = Concat<axis=0>(ends, three)  y = Reshape(h, n) }""",
    "reshape behind two that undo each other": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        s = Shape(x)  t = Transpose<perm=[1,0,2]>(x)  n = Shape(t)  a = Reshape(x, n)  b = Relu(a)  c = Reshape(b, s)
        d = Transpose<perm=[1,0,2]>(c)  [bad] y = Reshape(d, s) }""",
    "the first row for all": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        [bad] first = Gather<axis=0>(x, zero)  y = Add(x, first) }""",
    "only the first row": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        [bad] first = Slice(x, zero1, one1, zero1)  y = Relu(first) }""",
    "batch and sequence exchanged": """g (float[batch, seq, 4] x) => (float[batch, seq, 4] y) {
        h = Relu(x)  [bad] y = Transpose<perm=[1,0,2]>(h) }""",
    "batch read as time": """g (float[batch, seq, 4] x) => (float[batch, 1, seq, 3] y) {
        [bad] y, last = GRU<hidden_size=3>(x, gw, gr) }""",
    "position in the batch": """g (float[batch, 4] x) => (float[batch, 4] y) {
        shape = Shape(x)  n = Gather(shape, zero)  at = Range(zero, n, one)  f = Cast<to=1>(at)
        c = Unsqueeze(f, one1)  [bad] y = Add(x, c) }""",
    "divided by the batch": """g (float[batch, 4] x) => (float[batch, 4] y) {
        shape = Shape(x)  n = Gather(shape, zero)  f = Cast<to=1>(n)  [bad] y = Div(x, f) }""",
    "sum along a fixed batch": """g (float[4, 3, 8, 8] x) => (float[4, 2, 6, 6] y) {
        c = Conv(x, w2333)  [bad] y = CumSum(c, zero) }""",
}
MASK = "m = Cast<to=1>(attention_mask)  off = Sub(onef, m)  low = Mul(off, LOWEST)  l3 = Unsqueeze(low, AXIS)"


def attention(lowest: str = "lowest", axis: str = "one1") -> onnx.ModelProto:
    """One layer of attention over embedded ids. lowest: what is added to masked scores; axis: where they broadcast."""
    mask = MASK.replace("LOWEST", lowest).replace("AXIS", axis)
    return model(
        f"""g (int64[batch, seq] input_ids, int64[batch, seq] attention_mask) => (float[batch, seq, 4] y) {{
            e = Gather(table, input_ids)  k = Transpose<perm=[0,2,1]>(e)  s = MatMul(e, k)
            {mask}  masked = Add(s, l3)  [weights] a = Softmax<axis=-1>(masked)  y = MatMul(a, e) }}"""
    )


def model(text: str) -> onnx.ModelProto:
    """A model of the text, with the weights that it names."""
    made = from_text(text.replace("  ", "\n"))
    read = {name for node in made.graph.node for name in node.input}
    return with_weights(made, **{name: value for name, value in _weights().items() if name in read})


def _weights() -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:  # type: ignore[type-arg]
        return random.standard_normal(shape).astype(np.float32)

    def whole(*values: int) -> np.ndarray:  # type: ignore[type-arg]
        return np.array(values, np.int64)

    return {
        "w43": draw(4, 3), "w2333": draw(2, 3, 3, 3), "gw": draw(1, 9, 4), "gr": draw(1, 9, 3), "table": draw(20, 4),
        "heads": whole(0, 0, 2, 2), "joined": whole(0, 0, 4), "tokens": whole(-1, 4), "three": whole(3),
        "zero": np.array(0), "one": np.array(1), "zero1": whole(0), "one1": whole(1), "two1": whole(2),
        "ten": whole(10), "half": np.array([0.5], np.float32), "none": np.array([0.0], np.float32),
        "ones": np.ones(3, np.float32), "none3": np.zeros(3, np.float32), "onef": np.array(1.0, np.float32),
        "lowest": np.array(-1e9, np.float32), "mild": np.array(-1.0, np.float32),
    }  # fmt: skip
