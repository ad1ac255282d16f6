"""Wrong operators: inputs the wrong way round, another operator, NaN, a result that is one percent too large."""

import numpy as np
from support.faults.draft import Draft, Fault

_ORDERED = ("Sub", "Div", "Pow", "MatMul", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Mod")
_PAIRS = {  # operator -> inputs that are easily confused
    "BatchNormalization": [(1, 4), (2, 3), (1, 2)],
    "LayerNormalization": [(1, 2)],
    "InstanceNormalization": [(1, 2)],
    "Where": [(1, 2)],
}
_OTHER = {
    "Relu": ["Abs", "Softplus"], "Sigmoid": ["HardSigmoid", "Softsign"], "Tanh": ["Softsign", "Erf"],
    "Erf": ["Tanh"], "Add": ["Max", "Sub"], "Mul": ["Add", "Min"], "Sub": ["Add"], "Max": ["Min"], "Div": ["Mul"],
    "ReduceMean": ["ReduceMax", "ReduceL1"], "ReduceSum": ["ReduceMean"], "ReduceMax": ["ReduceMin"],
    "ReduceL2": ["ReduceL1"], "GlobalAveragePool": ["GlobalMaxPool"], "Sin": ["Cos"], "Cos": ["Sin"],
    "LessOrEqual": ["Less"], "GreaterOrEqual": ["Greater"], "Softmax": ["LogSoftmax"], "Sqrt": ["Abs"],
    "Exp": ["Softplus"], "Softplus": ["Relu"], "HardSwish": ["Relu"], "Reciprocal": ["Neg"], "Elu": ["Selu"],
}  # fmt: skip


def swapped(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """Two inputs of a node that is not symmetric in them change places."""
    node = draft.original(i)
    pairs = [(0, 1)] if node.op_type in _ORDERED else _PAIRS.get(node.op_type, [])
    fit = [pair for pair in pairs if _same_shape(draft, i, pair)]
    if not fit:
        return None
    a, b = fit[int(random.integers(len(fit)))]
    changed = draft.node(i)
    changed.input[a], changed.input[b] = node.input[b], node.input[a]
    return draft.fault("swapped inputs", i, f"inputs {a} and {b}")


def other(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """Another operator with the same inputs."""
    node, fact = draft.original(i), draft.fact(i)
    names = _OTHER.get(node.op_type)
    if not names or fact is None or fact.dtype.kind not in "fb":
        return None
    name = str(random.choice(names))
    changed = draft.node(i)
    changed.op_type = name
    if name in ("HardSigmoid", "Selu"):
        del changed.attribute[:]
    return draft.fault("other operator", i, f"{node.op_type} -> {name}")


def scaled(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A result times 1.01."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or draft.original(i).op_type == "Constant":
        return None
    raw, name = draft.divert(i)
    draft.after(i, "Mul", [raw, draft.constant(np.float32(1.01))], name)
    return draft.fault("scaled node", i, "result x1.01")


def not_a_number(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """0/0, a root or a logarithm of what should not be negative: the result is NaN in places, right in all others."""
    fact = draft.fact(i)
    if fact is None or not fact.floating or draft.original(i).op_type == "Constant":
        return None
    ways = ["0/0"] * fact.zeros + ["Sqrt", "Log"] * (fact.low < 0)
    if not ways:
        return None
    way = str(random.choice(ways))
    raw, name = draft.divert(i)
    if way == "0/0":
        draft.after(i, "Mul", [raw, draft.after(i, "Div", [raw, raw])], name)
    elif way == "Sqrt":
        root = draft.after(i, "Sqrt", [raw])
        draft.after(i, "Mul", [root, root], name)
    else:
        draft.after(i, "Exp", [draft.after(i, "Log", [raw])], name)
    return draft.fault("nan", i, f"{way} of the result")


def _same_shape(draft: Draft, i: int, pair: tuple[int, int]) -> bool:
    """Whether two inputs may change places: a product needs equal squares, others what they broadcast to."""
    node = draft.original(i)
    shapes = [_shape(draft, i, slot) for slot in pair]
    if node.op_type == "MatMul":
        return shapes[0] is not None and shapes[0] == shapes[1] and len(set(shapes[0][-2:])) == 1
    if node.op_type in _PAIRS and node.op_type != "Where":
        return shapes[0] is not None and shapes[0] == shapes[1]
    return bool(node.input[pair[0]] != node.input[pair[1]])


def _shape(draft: Draft, i: int, slot: int) -> tuple[int, ...] | None:
    weight, fact = draft.weight(i, slot), draft.input_fact(i, slot)
    if weight is not None:
        return tuple(weight.shape)
    return fact.shape if fact is not None else None
