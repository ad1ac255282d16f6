"""Options of `surgeon edit`, each an edit in the order they are typed, as the JSON that `surgery.edits` reads."""

import argparse
import base64
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backends.errors import BadFile, UsageError
from backends.files import user_path
from backends.text import shown
from tui.cli.parser import Parser
from tui.cli.surgeon.common import parse_dims
from tui.cli.surgeon.insert import parse_attributes
from tui.cli.values import parse_map

Json = dict[str, Any]
Maker = Callable[[list[str]], Json]
_CONSTANT = re.compile(r"(?P<values>-?[\d.\[].*?)(:(?P<dtype>[a-z]+\d*))?", re.DOTALL)
_END = re.compile(r"(?P<name>.+?)(:(?P<shape>auto|\[[^\]]*\]))?(:(?P<dtype>auto|[a-z]+\d+|bool))?", re.DOTALL)


class EditFlag(argparse.Action):
    """Appends an edit to `edits`, in the scope that the last --scope named."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        words = [values] if isinstance(values, str) else list(values or [])
        if self.dest == "scope":
            namespace.scope = words
            return
        made = self.const(words)
        scope = getattr(namespace, "scope", None)
        if scope and "edit" in made:
            made["scope"] = scope
        namespace.edits = [*(getattr(namespace, "edits", None) or []), made]


def add_edits(parser: Parser) -> None:
    """All options that are edits."""
    _nodes(parser)
    _names_and_ends(parser)
    _whole(parser)


def _nodes(parser: Parser) -> None:
    group = parser.add_argument_group(
        "Edits of nodes, which are named by name or first output; done in the order they are typed"
    )

    def add(flag: str, maker: Maker, nargs: str | int, metavar: Any, text: str) -> None:
        group.add_argument(flag, action=EditFlag, const=maker, nargs=nargs, metavar=metavar, help=text, dest="edits")

    add("--delete", _delete, "+", "NODE", "delete nodes; who read them reads what they read (OUTPUT=INPUT: which)")
    add("--bypass", lambda w: {"edit": "bypass", "ops": w}, "+", "OP", "delete all nodes of these types the same way")
    add("--insert", _insert, "+", "WORD", "TENSOR OP [OPERAND…] [NAME=VALUE…]: a node on a tensor; an operand is a "
        "tensor, or a constant as 2.0 or [1,2]:int64")  # fmt: skip
    add("--add-node", _add_node, "+", "WORD", "OP OUTPUT [OPERAND…] [NAME=VALUE…]: a node that makes a new tensor")
    add("--replace", _replace, "+", "WORD", "NODE OP [OPERAND…] [NAME=VALUE…]: another node in its place")
    add("--replace-pattern", _pattern, "+", "WORD", "OP,OP,… NEW_OP [OPERAND…] [NAME=VALUE…]: another node in place of "
        "each such chain; $1.0 is input 0 of its second node; FILE.onnx for NEW_OP is a subgraph")  # fmt: skip
    add("--insert-between", _between, "+", "WORD", "INPUT,… OUTPUT,… OP [NAME=VALUE…]: a node in the place of all "
        "that lies between")  # fmt: skip
    add("--set-attribute", _set_attribute, "+", "WORD", "NODE NAME=VALUE…; NAME= removes it")
    add("--set-op", lambda w: {"edit": "set-op", "nodes": w[:1], "op": w[-1]}, 2, ("NODE", "OP"),
        "another operator, all else the same")  # fmt: skip
    add("--set-domain", lambda w: {"edit": "set-op", "nodes": w[:1], "domain": w[-1]}, 2,
        ("NODE", "DOMAIN"), "another operator domain")  # fmt: skip
    parser.own(group, "--scope", action=EditFlag, nargs="*", metavar="WORD", dest="scope",
               help="NODE ATTRIBUTE …: what follows is in that body; function DOMAIN:NAME; or nothing")  # fmt: skip


def _names_and_ends(parser: Parser) -> None:
    group = parser.add_argument_group("Edits of names, inputs and outputs")

    def add(flag: str, maker: Maker, nargs: str | int, metavar: Any, text: str) -> None:
        group.add_argument(flag, action=EditFlag, const=maker, nargs=nargs, metavar=metavar, help=text, dest="edits")

    add(
        "--rename-node", lambda w: {"edit": "rename-node", "node": w[0], "to": w[1]}, 2, ("OLD", "NEW"), "rename a node"
    )
    add("--rename-tensor", lambda w: {"edit": "rename-tensor", "tensor": w[0], "to": w[1]}, 2, ("OLD", "NEW"),
        "rename a tensor")  # fmt: skip
    add("--mark-output", lambda w: {"edit": "mark-output", "tensors": w}, "+", "TENSOR", "make tensors outputs too")
    add("--unmark-output", lambda w: {"edit": "unmark-output", "tensors": w}, "+", "TENSOR", "no outputs any more")
    add("--debug-outputs", _debug_outputs, "*", "GLOB", "make many tensors outputs: by name, op:TYPE, or all")
    add("--set-outputs", lambda w: {"edit": "set-outputs", "outputs": list(map(_end, w))}, "+", "NAME[:SHAPE][:TYPE]",
        "these outputs instead")  # fmt: skip
    add("--set-inputs", lambda w: {"edit": "set-inputs", "inputs": list(map(_end, w))}, "+", "NAME[:SHAPE][:TYPE]",
        "feed these tensors; what made them goes")  # fmt: skip
    add("--add-input", lambda w: {"edit": "add-input", "input": _end(w[0])}, 1, "NAME:SHAPE:TYPE", "one more input")
    add("--remove-inputs", lambda w: {"edit": "remove-input", "tensors": w}, "*", "NAME", "inputs that nothing reads")
    add("--set-shape", lambda w: {"edit": "set-shape", "tensors": list(map(_end, w))}, "+", "NAME:[DIMS]",
        "other shapes of inputs; names are dynamic lengths")  # fmt: skip
    add("--set-batch", lambda w: {"edit": "set-batch", "batch": _number_or_text(w[0])}, 1, "SIZE",
        "the first dimension of all inputs")  # fmt: skip
    add("--freeze-dims", lambda w: {"edit": "freeze-dims", "dims": _sizes(w)}, "+", "NAME=SIZE",
        "numbers in the place of dynamic lengths")  # fmt: skip
    add("--upper-bounds", lambda w: {"edit": "upper-bounds", "bounds": parse_map(w, int, "an upper bound")}, "+",
        "[TENSOR:]SIZE", "limit tensors that size others without a limit")  # fmt: skip


def _whole(parser: Parser) -> None:
    group = parser.add_argument_group("Edits of weights and of the whole model")

    def add(flag: str, maker: Maker, nargs: str | int, metavar: Any, text: str) -> None:
        group.add_argument(flag, action=EditFlag, const=maker, nargs=nargs, metavar=metavar, help=text, dest="edits")

    def plain(flag: str, text: str) -> None:
        add(f"--{flag}", lambda w: {"edit": flag}, 0, None, text)

    add("--set-weight", _set_weight, "+", "NAME=FILE.npy", "other values for weights")
    add("--add-weight", _add_weight, 2, ("NAME", "CONSTANT"), "a weight that nothing reads yet")
    add("--sparsify", lambda w: {"edit": "sparsify", "weights": w}, "*", "NAME", "2:4 sparse weights; all by default")
    plain("clean-up", "leave out what no output needs")
    plain("toposort", "put nodes in an order in which they can run")
    plain("deduplicate", "one of each set of equal nodes and weights")
    plain("infer-shapes", "declare types and shapes of inner tensors")
    add("--extract", lambda w: {"edit": "extract", "nodes": w}, "+", "NODE", "these nodes alone (`surgeon extract` "
        "takes tensors)")  # fmt: skip
    add("--fold", lambda w: {"edit": "fold"}, 0, None, "fold constants (`surgeon sanitize` has all options)")
    add("--convert-precision", _precision, "+", "WORD", "float16 or bfloat16 [NODE…] [keep=NODE…]")
    add("--set-opset", lambda w: {"edit": "set-opset", "version": _whole_number(w[0])}, 1, "VERSION", "another opset")
    add("--edit", lambda w: _json(w[0]), 1, "JSON", 'any edit, as {"edit": "set-op", "nodes": ["n"], "op": "Relu"}')
    add("--edits", lambda w: {"file": w[0]}, 1, "FILE", "the edits of a JSON file, or of the app's history of a model")


def _delete(words: list[str]) -> Json:
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    nodes = [word for word in words if "=" not in word]
    return {"edit": "delete-node", "nodes": nodes, **({"reconnect": pairs} if pairs else {})}


def _insert(words: list[str]) -> Json:
    tensor, op, *rest = _at_least(words, 2, "--insert TENSOR OP")
    operands, attributes = _split(rest)
    return {"edit": "insert-node", "tensor": tensor, **_op(op), "operands": operands, "attributes": attributes}


def _add_node(words: list[str]) -> Json:
    op, output, *rest = _at_least(words, 2, "--add-node OP OUTPUT")
    operands, attributes = _split(rest)
    return {"edit": "add-node", **_op(op), "outputs": [output], "inputs": operands, "attributes": attributes}


def _replace(words: list[str]) -> Json:
    node, op, *rest = _at_least(words, 2, "--replace NODE OP")
    operands, attributes = _split(rest)
    made = {"edit": "replace-node", "node": node, **_op(op), "attributes": attributes}
    return {**made, "inputs": operands} if operands else made


def _pattern(words: list[str]) -> Json:
    pattern, op, *rest = _at_least(words, 2, "--replace-pattern OP,OP NEW_OP")
    operands, attributes = _split(rest)
    by: Json = {"subgraph": _bytes(op)} if op.endswith(".onnx") else {**_op(op), "attributes": attributes}
    return {"edit": "replace-pattern", "pattern": pattern.split(","), "inputs": operands, **by}


def _between(words: list[str]) -> Json:
    inputs, outputs, op, *rest = _at_least(words, 3, "--insert-between INPUTS OUTPUTS OP")
    made = {"edit": "insert-between", "inputs": inputs.split(","), "outputs": outputs.split(",")}
    return {**made, "op": op, "attributes": parse_attributes(rest)}


def _set_attribute(words: list[str]) -> Json:
    node, item = _at_least(words, 2, "--set-attribute NODE NAME=VALUE")[:2]
    if len(words) > 2:
        raise UsageError("--set-attribute takes one attribute: say it again for another")
    name, equals, text = item.partition("=")
    if not name or not equals:
        raise UsageError(f"{shown(item, 80)!r} is not an attribute; write NAME=VALUE, as in axis=1")
    value = parse_attributes([item])[name] if text else None
    return {"edit": "set-attribute", "nodes": [node], "name": name, "value": value}


def _debug_outputs(words: list[str]) -> Json:
    ops = [word.removeprefix("op:") for word in words if word.startswith("op:")]
    return {"edit": "debug-outputs", "names": [w for w in words if not w.startswith("op:")], "ops": ops}


def _set_weight(words: list[str]) -> Json:
    pairs = [word.rpartition("=") for word in words]
    if not all(name and path for name, _, path in pairs):
        raise UsageError("--set-weight takes NAME=FILE.npy")
    return {"edit": "set-weight", "weights": {name: _bytes(path) for name, _, path in pairs}}


def _add_weight(words: list[str]) -> Json:
    value = _operand(words[1])
    if isinstance(value, str):
        raise UsageError(f"{shown(words[1], 80)!r} is not a constant; write it as 2.0 or [1,2]:int64")
    return {"edit": "add-weight", "name": words[0], "value": value}


def _precision(words: list[str]) -> Json:
    to, *rest = words
    keep = [word.removeprefix("keep=") for word in rest if word.startswith("keep=")]
    nodes = [word for word in rest if not word.startswith("keep=")]
    return {"edit": "convert-precision", "to": to, "nodes": nodes, "keep": keep}


def _op(text: str) -> Json:
    """`Op`, or `domain:Op`."""
    domain, _, op = text.rpartition(":")
    return {"op": op, **({"domain": domain} if domain else {})}


def _split(words: Sequence[str]) -> tuple[list[Any], Json]:
    """Operands, and attributes as NAME=VALUE."""
    attributes = [word for word in words if re.fullmatch(r"[A-Za-z_]\w*=.*", word, re.DOTALL)]
    return [_operand(word) for word in words if word not in attributes], parse_attributes(attributes)


def _operand(word: str) -> Any:
    """A constant as `2.0`, `3:int64` or `[1,2]:int64`; else the name of a tensor (`tensor:12` for one called 12)."""
    if word.startswith("tensor:"):
        return word.removeprefix("tensor:")
    match = _CONSTANT.fullmatch(word)
    try:
        return word if match is None else {"values": json.loads(match["values"]), "dtype": match["dtype"] or "float32"}
    except ValueError:
        return word


def _end(word: str) -> Json:
    """`NAME`, `NAME:[DIMS]`, `NAME:TYPE` or `NAME:[DIMS]:TYPE`."""
    match = _END.fullmatch(word)
    assert match is not None
    made: Json = {"name": match["name"]}
    if match["shape"] not in (None, "auto"):
        made["shape"] = parse_dims(match["shape"], word)
    if match["dtype"] not in (None, "auto"):
        made["dtype"] = match["dtype"]
    return made


def _sizes(words: Sequence[str]) -> Json:
    pairs = [word.rpartition("=") for word in words]
    return {name: _whole_number(size) for name, _, size in pairs}


def _number_or_text(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{shown(text, 80)!r} is not a whole number") from None


def _at_least(words: list[str], count: int, usage: str) -> list[str]:
    if len(words) < count:
        raise UsageError(f"write {usage} …")
    return words


def _json(text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--edit {shown(text, 120)!r}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"--edit {shown(text, 120)!r}: an edit is a JSON object")
    return value


def _bytes(path: str) -> str:
    place: Path = user_path(path)
    try:
        return base64.b64encode(place.read_bytes()).decode()
    except OSError as error:
        raise BadFile(place, error.strerror or str(error)) from None
