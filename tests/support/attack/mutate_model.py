"""Mutations of small real models that know the structure of ONNX, and some that do not."""

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, external_data_helper, helper
from support import bad_models, models

HUGE = (2**31, 2**40, 2**62, -1, -(2**40), 0, 1 << 24, 20_000_000)
NAMES = (
    "", "\x1b[31mred", "a\nb", "$(touch X)", "`touch X`", "'; touch X; '", "../../etc/passwd", "x" * 5000,
    "\u202eevil", "-o", "--help", "x:auto:auto", "[bold]x", "\x00nul", "a b", "%s{0}", "\ud7ffx", "#", "~", "*",
    "<script>alert(1)</script>",
)  # fmt: skip
PATHS = (
    "/etc/passwd", "../good.onnx", "nowhere.bin", "", "good.onnx", ".", "/dev/zero", "h.onnx", "pair.data", "a\x00b",
    "fifo", "link.bin", "sparse.bin",
)  # fmt: skip
Mutation = Callable[[onnx.ModelProto, random.Random], str]


def _mlp() -> onnx.ModelProto:
    return models.mlp(24, 3)


SOURCES: tuple[Callable[[], onnx.ModelProto], ...] = (
    _mlp, _mlp, models.conv_net, models.if_model, models.loop_model, models.scan_model, models.sequence_model,
    models.dynamic_model, models.function_model, models.bf16_model, models.string_model,
    *bad_models.KINDS.values(),
)  # fmt: skip


def write(path: Path, source: Callable[[], onnx.ModelProto], chance: random.Random, folder: Path) -> str:
    """Write the mutated model; what was done to it."""
    model, told = source(), []
    for mutation in chance.sample(MUTATIONS, chance.choice((1, 1, 2, 3))):
        with suppress(ValueError, TypeError, DecodeError):  # what protobuf does not take
            told.append(f"{mutation.__name__.strip('_')} {mutation(model, chance)}")
    if any("external" in text for text in told):
        _external_files(folder)
    data = model.SerializeToString()
    if chance.random() < 0.25:
        data = _bytes(data, chance)
        told.append("bytes")
    path.write_bytes(data)
    return ", ".join(told).encode("unicode_escape").decode()[:300]


def _external_files(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "link.bin").symlink_to("/etc/passwd")
    with (folder / "sparse.bin").open("wb") as file:
        file.truncate(3 << 30)


def _bytes(data: bytes, chance: random.Random) -> bytes:
    """Flips, cuts, repeats."""
    text = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text)) if text else 0
        way = chance.choice(("flip", "cut", "drop", "double", "insert"))
        if way == "flip":
            text[at : at + 1] = bytes([chance.randrange(256)])
        elif way == "cut" and chance.random() < 0.3:
            del text[at:]
        elif way == "drop":
            del text[at : at + chance.randint(1, 64)]
        elif way == "double":
            text[at:at] = text[at : at + chance.randint(1, 64)]
        elif way == "insert":
            text[at:at] = chance.randbytes(chance.randint(1, 16))
    return bytes(text)


def _value_dims(model: onnx.ModelProto, chance: random.Random) -> str:
    """The shape of an input, an output or a value."""
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    value = chance.choice(values)
    dims = [chance.choice((*HUGE, 1, 2, "batch", "")) for _ in range(chance.choice((0, 1, 1, 2, 4, 40)))]
    elem = value.type.tensor_type.elem_type or 1
    value.CopyFrom(helper.make_tensor_value_info(value.name, elem, dims))
    return f"{value.name} {dims[:4]}"


def _weight_dims(model: onnx.ModelProto, chance: random.Random) -> str:
    for tensor in _some(model.graph.initializer, chance):
        tensor.dims[:] = [chance.choice((*HUGE, 1, 3)) for _ in range(chance.choice((0, 1, 2, 8)))]
        return f"{tensor.name} {list(tensor.dims)}"
    return "-"


def _weight_data(model: onnx.ModelProto, chance: random.Random) -> str:
    for tensor in _some(model.graph.initializer, chance):
        tensor.raw_data = chance.randbytes(chance.choice((0, 1, 3, 7, 1000)))
        return f"{tensor.name} {len(tensor.raw_data)} bytes"
    return "-"


def _weight_type(model: onnx.ModelProto, chance: random.Random) -> str:
    for tensor in _some(model.graph.initializer, chance):
        tensor.data_type = chance.choice((0, 1, 7, 8, 9, 10, 14, 16, 17, 21, 22, 23, 77, -1, 2**31 - 1))
        return f"{tensor.name} {tensor.data_type}"
    return "-"


def _value_type(model: onnx.ModelProto, chance: random.Random) -> str:
    value = chance.choice([*model.graph.input, *model.graph.output])
    value.type.tensor_type.elem_type = chance.choice((0, 7, 8, 9, 14, 17, 22, 99, 2**31 - 1))
    return f"{value.name} {value.type.tensor_type.elem_type}"


def _name(model: onnx.ModelProto, chance: random.Random) -> str:
    """A tensor's name everywhere, or a node's, an operator's, a domain's."""
    new = chance.choice(NAMES)
    nodes = list(model.graph.node)
    if not nodes:
        return "-"
    node, way = chance.choice(nodes), chance.choice(("tensor", "tensor", "name", "op", "domain", "graph", "doc"))
    if way == "tensor" and node.output:
        _rename(model, node.output[0], new)
    elif way == "op":
        node.op_type = new
    elif way == "domain":
        node.domain = new
    elif way == "graph":
        model.graph.name = new
    elif way == "doc":
        node.doc_string = new
    else:
        node.name = new
    return f"{way} {new[:40]!r}"


def _rename(model: onnx.ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        value.name = new if value.name == old else value.name


def _wiring(model: onnx.ModelProto, chance: random.Random) -> str:
    """A cycle, an input from nowhere, an output twice, an output missing."""
    nodes = [node for node in model.graph.node if node.input and node.output]
    if not nodes:
        return "-"
    node, other = chance.choice(nodes), chance.choice(nodes)
    way = chance.choice(("cycle", "nowhere", "twice", "missing", "order", "many"))
    if way == "cycle":
        node.input[0] = other.output[0]
    elif way == "nowhere":
        node.input[0] = "nowhere"
    elif way == "twice":
        node.output[0] = other.output[0]
    elif way == "missing":
        model.graph.output[0].name = "nowhere"
    elif way == "order":
        shuffled = list(model.graph.node)
        chance.shuffle(shuffled)
        del model.graph.node[:]
        model.graph.node.extend(shuffled)
    else:
        node.input.extend([node.input[0]] * 500)
    return way


def _attribute(model: onnx.ModelProto, chance: random.Random) -> str:
    nodes = list(model.graph.node)
    if not nodes:
        return "-"
    value = chance.choice((2**62, -1, 1e308, "x", [2**40] * 4, [], b"\xff\xfe", float("nan")))
    node = chance.choice(nodes)
    name = chance.choice([one.name for one in node.attribute] or ["axis", "to", "perm", "pads", "value"])
    del node.attribute[:]
    kind: dict[str, Any] = {"attr_type": onnx.AttributeProto.INTS} if value == [] else {}
    node.attribute.append(helper.make_attribute(name, value, **kind))
    return f"{node.op_type}.{name}"


def _operator(model: onnx.ModelProto, chance: random.Random) -> str:
    """Operators that make much from little."""
    op, shape = (
        chance.choice(("ConstantOfShape", "Expand", "Tile", "Range", "Resize", "Pad")),
        [2 ** chance.choice((20, 33, 40))],
    )
    names = ["much", "more"]
    model.graph.initializer.append(helper.make_tensor("how_much", TensorProto.INT64, [len(shape)], shape))
    source = model.graph.input[0].name if model.graph.input else "how_much"
    inputs = ["how_much"] if op == "ConstantOfShape" else [source, "how_much"]
    model.graph.node.append(helper.make_node(op, inputs, [names[0]], "blow"))
    if chance.random() < 0.5:
        model.graph.output.append(helper.make_tensor_value_info(names[0], 1, None))
    return f"{op} {shape}"


def _rank(model: onnx.ModelProto, chance: random.Random) -> str:
    """A tensor whose number of dimensions is the length of another one."""
    length = chance.choice((2**40, 20_000_000, 2**62, 2**31))
    op = chance.choice(("ConstantOfShape", "Expand", "Reshape", "Tile", "Identity", "Cast", "Loop"))
    model.graph.input.append(helper.make_tensor_value_info("long", TensorProto.INT64, [length]))
    source = model.graph.input[0].name
    inputs = {"ConstantOfShape": ["long"], "Identity": ["long"], "Cast": ["long"]}.get(op, [source, "long"])
    kind: dict[str, Any] = {"to": 7} if op == "Cast" else {}
    model.graph.node.append(helper.make_node(op, inputs, ["ranked"], "rank", **kind))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["ranked"], ["twice"], "rank2"))
    model.graph.output.append(helper.make_tensor_value_info(chance.choice(("ranked", "twice")), 1, None))
    return f"{op} {length}"


def _external(model: onnx.ModelProto, chance: random.Random) -> str:
    for tensor in _some(model.graph.initializer, chance):
        place = chance.choice(PATHS)
        if not tensor.HasField("raw_data"):
            tensor.raw_data = b"\0" * 16
        external_data_helper.set_external_data(
            tensor, place, chance.choice((None, 0, -1, 2**40)), chance.choice((None, 4, 2**40))
        )
        tensor.ClearField("raw_data")
        return f"external {place!r}"
    return "-"


def _versions(model: onnx.ModelProto, chance: random.Random) -> str:
    model.ir_version = chance.choice((0, 1, 3, 99, 2**31))
    if model.opset_import:
        model.opset_import[0].version = chance.choice((0, 1, 6, 999, 2**40))
    return f"ir {model.ir_version}"


def _empty(model: onnx.ModelProto, chance: random.Random) -> str:
    field = chance.choice(("node", "input", "output", "initializer", "opset_import"))
    del getattr(model if field == "opset_import" else model.graph, field)[:]
    return field


def _repeated(model: onnx.ModelProto, chance: random.Random) -> str:
    field = chance.choice(("node", "input", "output", "initializer", "value_info"))
    values = getattr(model.graph, field)
    values.extend(list(values))
    return field


def _nested(model: onnx.ModelProto, chance: random.Random) -> str:
    """Bodies in bodies."""
    depth = chance.choice((5, 60, 95))
    body = helper.make_graph([], "innermost", [], [])
    for level in range(depth):
        node = helper.make_node(
            "If", [f"c{level}"], [f"o{level}"], then_branch=body, else_branch=helper.make_graph([], "e", [], [])
        )
        body = helper.make_graph([node], f"body{level}", [], [])
    model.graph.node.extend(body.node)
    return f"{depth} deep"


def _some(values: object, chance: random.Random) -> list[onnx.TensorProto]:
    found = list(values)  # type: ignore[call-overload]
    return [chance.choice(found)] if found else []


MUTATIONS: tuple[Mutation, ...] = (
    _value_dims, _weight_dims, _weight_data, _weight_type, _value_type, _name, _name, _wiring, _attribute, _operator,
    _rank, _external, _versions, _empty, _repeated, _nested,
)  # fmt: skip
