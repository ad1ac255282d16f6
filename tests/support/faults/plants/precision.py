"""FP16 as FP32 nodes between Cast round trips (a CPU computes FP16 nodes in FP32), and casts that should not be there.

Operators that hide their inner steps are taken apart first, as an FP16 kernel without FP32 accumulation has them.
"""

import numpy as np
from onnx import TensorProto
from support.faults.draft import Draft, Fault

LARGEST = 65504.0
_EXACT = frozenset(
    {
        *("Abs", "Concat", "Expand", "Flatten", "Gather", "Identity", "Max", "MaxPool", "Min", "Neg", "Relu"),
        *("Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where", "Constant", "TopK"),
        *("ReduceMax", "ReduceMin", "Cast", "Shape", "ConstantOfShape"),
    }
)


def rounding(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A node in FP16 whose numbers fit: its result is rounded to 11 bits."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or fact.peak >= LARGEST or draft.original(i).op_type in _EXACT:
        return None
    _round_output(draft, i)
    return draft.fault("fp16 rounding", i, "result through FP16")


def overflow(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A node in FP16 whose result goes beyond 65504."""
    return _too_large(draft, i, "fp16 overflow")


def power(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """The same of a power: the square of a LayerNorm, the cube of a GELU."""
    return _too_large(draft, i, "fp16 pow") if draft.original(i).op_type == "Pow" else None


def layer_norm(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """LayerNormalization over the last axis, in FP16 steps; the squares overflow where activations are massive."""
    node, fact = draft.original(i), draft.input_fact(i, 0)
    if node.op_type != "LayerNormalization" or fact is None or len(node.input) < 3:
        return None
    epsilon = next((entry.f for entry in node.attribute if entry.name == "epsilon"), 1e-5)
    x, scale, bias = draft.node(i).input[:3]
    mean = _low(draft, i, draft.reduce(i, "ReduceMean", x, [-1]))
    centred = _low(draft, i, draft.after(i, "Sub", [x, mean]))
    square = _low(draft, i, draft.after(i, "Mul", [centred, centred]))
    variance = _low(draft, i, draft.reduce(i, "ReduceMean", square, [-1]))
    shifted = draft.after(i, "Add", [variance, draft.constant(np.float32(epsilon))])
    normal = draft.after(i, "Div", [centred, draft.after(i, "Sqrt", [shifted])])
    draft.after(i, "Add", [draft.after(i, "Mul", [normal, scale]), bias], node.output[0])
    draft.drop(i)
    return draft.fault("fp16 layer norm", i, f"in FP16 steps, inputs up to {fact.peak:.4g}")


def softmax(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """Softmax in FP16 steps that does not subtract the maximum: exp(12) is beyond 65504."""
    node, fact = draft.original(i), draft.input_fact(i, 0)
    if node.op_type != "Softmax" or fact is None:
        return None
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), -1)
    powers = _low(draft, i, draft.after(i, "Exp", [node.input[0]]))
    total = _low(draft, i, draft.reduce(i, "ReduceSum", powers, [axis]))
    draft.after(i, "Div", [powers, total], node.output[0])
    draft.drop(i)
    return draft.fault("fp16 softmax", i, f"in FP16 steps, logits up to {fact.high:.4g}")


def mean(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A mean as a sum in FP16 and a division: the sum overflows before the mean would."""
    node, fact, out = draft.original(i), draft.input_fact(i, 0), draft.fact(i)
    kept = next((entry.i for entry in node.attribute if entry.name == "keepdims"), 1)
    axes = next((list(entry.ints) for entry in node.attribute if entry.name == "axes"), None)
    if node.op_type == "GlobalAveragePool" and fact is not None:
        axes = list(range(2, len(fact.shape)))
    if node.op_type not in ("ReduceMean", "GlobalAveragePool") or fact is None or out is None or not (kept and axes):
        return None
    count = int(np.prod([fact.shape[k] for k in axes]))
    total = _low(draft, i, draft.reduce(i, "ReduceSum", node.input[0], axes))
    draft.after(i, "Div", [total, draft.constant(np.float32(count))], node.output[0])
    draft.drop(i)
    return draft.fault("fp16 reduce", i, f"a sum of {count} in FP16, means up to {out.peak:.4g}")


def bad_cast(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A result goes through an integer type, or a narrower float, and back."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or fact.peak > 2**31 - 1000 or draft.original(i).op_type == "Constant":
        return None
    types = ["INT32", "FLOAT16" if draft.opset < 13 else "BFLOAT16"] + ["INT8"] * (fact.peak < 127)
    if draft.original(i).op_type in _EXACT and "FLOAT16" in types:
        types.remove("FLOAT16")
    chosen = str(random.choice(types))
    raw, name = draft.divert(i)
    low = draft.after(i, "Cast", [raw], to=getattr(TensorProto, chosen))
    draft.after(i, "Cast", [low], name, to=TensorProto.FLOAT)
    return draft.fault("bad cast", i, f"result through {chosen}")


def _too_large(draft: Draft, i: int, kind: str) -> Fault | None:
    fact = draft.fact(i)
    if fact is None or not fact.floating or not LARGEST < fact.peak < 1e30:
        return None
    _round_output(draft, i)
    return draft.fault(kind, i, f"result of up to {fact.peak:.4g} through FP16")


def _round_output(draft: Draft, i: int) -> None:
    raw, name = draft.divert(i)
    low = draft.after(i, "Cast", [raw], to=TensorProto.FLOAT16)
    draft.after(i, "Cast", [low], name, to=TensorProto.FLOAT)


def _low(draft: Draft, i: int, x: str) -> str:
    return draft.after(i, "Cast", [draft.after(i, "Cast", [x], to=TensorProto.FLOAT16)], to=TensorProto.FLOAT)
