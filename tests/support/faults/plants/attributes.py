"""Wrong attributes that keep every shape."""

from typing import Any

import numpy as np
from onnx import helper
from support.faults.draft import Draft, Fault

_WRONG: dict[str, dict[str, tuple[Any, Any]]] = {  # operator -> attribute -> (default, wrong: a factor or a value)
    "BatchNormalization": {"epsilon": (1e-5, 1e4)},
    "InstanceNormalization": {"epsilon": (1e-5, 1e4)},
    "LayerNormalization": {"epsilon": (1e-5, 1e4)},
    "LeakyRelu": {"alpha": (0.01, 2.0)},
    "Elu": {"alpha": (1.0, 1.5)},
    "Selu": {"alpha": (1.67326, 1.2), "gamma": (1.0507, 1.1)},
    "HardSigmoid": {"alpha": (0.2, 1.5), "beta": (0.5, 1.2)},
    "LRN": {"alpha": (1e-4, 10.0), "beta": (0.75, 1.3), "bias": (1.0, 1.2)},
    "Gemm": {"alpha": (1.0, 1.1), "beta": (1.0, 1.5)},
    "AveragePool": {"count_include_pad": (0, None)},
    "Resize": {"mode": ("nearest", None), "coordinate_transformation_mode": ("half_pixel", None)},
    "TopK": {"largest": (1, None)},
    "Gelu": {"approximate": ("none", None)},
}
_OTHER: dict[tuple[str, str], dict[Any, Any]] = {
    ("AveragePool", "count_include_pad"): {0: 1, 1: 0},
    ("Resize", "mode"): {b"linear": "nearest", b"nearest": "linear", b"cubic": "linear"},
    ("Resize", "coordinate_transformation_mode"): {b"half_pixel": "asymmetric", b"asymmetric": "half_pixel"},
    ("TopK", "largest"): {1: 0, 0: 1},
    ("Gelu", "approximate"): {b"none": "tanh", b"tanh": "none"},
}
_ALONG = ("Softmax", "LogSoftmax", "CumSum", "Hardmax")
_POOLS = ("Conv", "MaxPool", "AveragePool")


def attribute(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """An epsilon, alpha, beta, mode … with another value."""
    node = draft.original(i)
    known = _WRONG.get(node.op_type)
    if not known:
        return None
    name = str(random.choice(list(known)))
    default, factor = known[name]
    value = _value(node, name, default.encode() if isinstance(default, str) else default)
    wrong = _OTHER[node.op_type, name].get(value) if factor is None else value * factor
    if wrong is None:
        return None
    _set(draft, i, name, wrong)
    return draft.fault("attribute", i, f"{name}: {value!r} -> {wrong!r}")


def axis(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A softmax along another axis; a product with a square weight transposed."""
    node, fact = draft.original(i), draft.fact(i)
    if node.op_type == "Gemm":
        weight = draft.weight(i, 1)
        if weight is None or weight.shape[0] != weight.shape[1]:
            return None
        turned = 1 - _value(node, "transB", 0)
        _set(draft, i, "transB", turned)
        return draft.fault("axis", i, f"transB: {turned}")
    if node.op_type not in _ALONG or fact is None:
        return None
    rank = len(fact.shape)
    own = _value(node, "axis", -1) % rank
    others = [k for k in range(rank) if k != own and fact.shape[k] > 1]
    if not others:
        return None
    wrong = int(random.choice(others))
    _set(draft, i, "axis", wrong)
    return draft.fault("axis", i, f"axis: {own} -> {wrong}")


def window(draft: Draft, i: int, random: np.random.Generator) -> Fault | None:
    """A window that lies one off, or a dilated one with pads that make up for it."""
    node = draft.original(i)
    pads = _value(node, "pads", None)
    if node.op_type not in _POOLS or not pads or len(pads) != 4 or not any(pads):
        return None
    kernel = _value(node, "kernel_shape", None)
    strides, dilations = _value(node, "strides", [1, 1]), _value(node, "dilations", [1, 1])
    same = all(2 * pads[k] == kernel[k] - 1 for k in (0, 1)) if kernel else False
    if node.op_type == "Conv" and same and list(strides) == list(dilations) == [1, 1] and random.random() < 0.5:
        _set(draft, i, "pads", [2 * pad for pad in pads])
        _set(draft, i, "dilations", [2, 2])
        return draft.fault("window", i, "dilations: [2, 2], pads to match")
    side = 0 if pads[0] and pads[2] else 1
    wrong = list(pads)
    wrong[side], wrong[side + 2] = pads[side] - 1, pads[side + 2] + 1
    if (kernel and wrong[side + 2] >= kernel[side]) or wrong[side] < 0:
        return None
    _set(draft, i, "pads", wrong)
    return draft.fault("window", i, f"pads: {list(pads)} -> {wrong}")


def _value(node: Any, name: str, default: Any) -> Any:
    found = next((entry for entry in node.attribute if entry.name == name), None)
    return default if found is None else helper.get_attribute_value(found)


def _set(draft: Draft, i: int, name: str, value: Any) -> None:
    node = draft.node(i)
    kept = [entry for entry in node.attribute if entry.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
