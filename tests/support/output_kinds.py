"""Models whose outputs are of chosen kinds, and what two of them are worth beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FAMILIES = {
    "plain": ("tensor", "tensor", "zero"),
    "sequence": ("seq0", "seq1", "seq2", "seq3"),
    "optional": ("none", "some"),
    "text": ("string",),
    "small": ("int4",),
}
ABSENT = "absent"
FLOAT = TensorProto.FLOAT
SIZE = 6


def write_model(path: Path, kinds: Mapping[str, str], shift: float = 0.0) -> str:
    """Save a model of one input x, float32 (6,), with an output of each kind; its path. shift: of plain tensors."""
    nodes: list[onnx.NodeProto] = []
    outputs: list[onnx.ValueInfoProto] = []
    for name, kind in kinds.items():
        if kind != ABSENT:
            _add(name, kind, nodes, outputs)
    nodes.append(helper.make_node("Add", ["x", "shift"], ["shifted"]))
    constants = {
        "shift": np.float32(shift), "zero": np.array([0]), "n1": np.int64(6), "n2": np.int64(3), "n3": np.int64(2),
    }  # fmt: skip
    weights = [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()]
    nodes.sort(key=lambda node: "shifted" in node.input)
    graph = helper.make_graph(
        nodes, "kinds", [helper.make_tensor_value_info("x", FLOAT, [SIZE])], outputs, weights
    )  # fmt: skip
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    return str(path)


def _add(name: str, kind: str, nodes: list[onnx.NodeProto], outputs: list[onnx.ValueInfoProto]) -> None:
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    if kind.startswith("seq"):
        count = kind[3:]
        made = helper.make_node("SplitToSequence", ["x", f"n{count}"], [name])
        nodes.append(helper.make_node("SequenceEmpty", [], [name], dtype=FLOAT) if count == "0" else made)
        outputs.append(helper.make_tensor_sequence_value_info(name, FLOAT, None))
    elif kind in ("none", "some"):
        made = helper.make_node("Optional", ["x"], [name])
        nodes.append(helper.make_node("Optional", [], [name], type=tensor) if kind == "none" else made)
        outputs.append(helper.make_value_info(name, helper.make_optional_type_proto(tensor)))
    elif kind == "zero":
        nodes.append(helper.make_node("Slice", ["x", "zero", "zero"], [name]))
        outputs.append(helper.make_tensor_value_info(name, FLOAT, [0]))
    elif kind == "tensor":
        nodes.append(helper.make_node("Neg", ["shifted"], [name]))
        outputs.append(helper.make_tensor_value_info(name, FLOAT, [SIZE]))
    else:
        to = TensorProto.STRING if kind == "string" else TensorProto.INT4
        nodes.append(helper.make_node("Cast", ["x"], [name], to=to))
        outputs.append(helper.make_tensor_value_info(name, to, [SIZE]))


@dataclass
class Expected:
    """What a comparison of two such models must come to. reasons: tensor -> why it was not compared."""

    compared: int = 0
    failed: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return bool(self.compared) and not self.failed


def elements(kind: str) -> int:
    """How many arrays an output of this kind is."""
    return int(kind[3:]) if kind.startswith("seq") else int(kind != "none")


def expected(first: Mapping[str, str], second: Mapping[str, str]) -> Expected:
    """Of plain outputs that are otherwise equal."""
    found = Expected()
    for name in first:
        a, b = first[name], second[name]
        if ABSENT in (a, b):
            if a != b:
                found.reasons[name] = "no counterpart"
        elif "zero" in (a, b):
            if a == b:
                found.reasons[name] = "empty"
            else:
                found.failed.add(name)
        elif elements(a) != elements(b):
            found.failed.add(name)
        elif not elements(a):
            found.reasons[name] = "no value"
        else:
            found.compared += elements(a)
    found.compared += len(found.failed)
    return found


def drawn_pair(seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """The kinds of two models' outputs, often alike."""
    draw = np.random.default_rng(seed)
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    families = [str(draw.choice(list(FAMILIES))) for _ in range(int(draw.integers(1, 4)))]
    for number, family in enumerate(families):
        one = str(draw.choice(FAMILIES[family]))
        other = one if draw.random() < 0.6 else str(draw.choice([*FAMILIES[family], ABSENT]))
        pair = (one, other) if draw.random() < 0.5 else (other, one)
        for side, kind in zip(sides, pair, strict=True):
            side[f"out{number}"] = kind
    return sides
