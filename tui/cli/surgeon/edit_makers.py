"""Edits made of the words that follow an option of `surgeon edit`, as the JSON that `surgery.edits` reads."""

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import MOST, read_file
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.surgeon.common import parse_dims
from layerwise._tool.tui.cli.surgeon.insert import parse_attributes

Json = dict[str, object]
"""An edit, or a part of one, as `surgery.edits.edit_from` reads it."""
_CONSTANT = re.compile(r"(?P<values>-?(inf|nan|[\d.\[].*?))(:(?P<dtype>[a-z]+\d*))?", re.DOTALL)
_END = re.compile(r"(?P<name>.+?)(:(?P<shape>auto|\[[^\]]*\]))?(:(?P<dtype>auto|[a-z]+\d+|bool))?", re.DOTALL)


def delete(words: list[str]) -> Json:
    """NODE…, and OUTPUT=INPUT pairs."""
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    nodes = [word for word in words if "=" not in word]
    return {"edit": "delete-node", "nodes": nodes, **({"reconnect": pairs} if pairs else {})}


def insert(words: list[str]) -> Json:
    """TENSOR OP, then operands and attributes."""
    tensor, op, *rest = _at_least(words, 2, "--insert TENSOR OP")
    operands, attributes = _split(rest)
    return {"edit": "insert-node", "tensor": tensor, **_op(op), "operands": operands, "attributes": attributes}


def add_node(words: list[str]) -> Json:
    """OP OUTPUT, then operands and attributes."""
    op, output, *rest = _at_least(words, 2, "--add-node OP OUTPUT")
    operands, attributes = _split(rest)
    return {"edit": "add-node", **_op(op), "outputs": [output], "inputs": operands, "attributes": attributes}


def replace(words: list[str]) -> Json:
    """NODE OP, then operands and attributes."""
    node, op, *rest = _at_least(words, 2, "--replace NODE OP")
    operands, attributes = _split(rest)
    made = {"edit": "replace-node", "node": node, **_op(op), "attributes": attributes}
    return {**made, "inputs": operands} if operands else made


def pattern(words: list[str]) -> Json:
    """OP,OP NEW_OP, then operands and attributes; NEW_OP may be a model's file."""
    pattern, op, *rest = _at_least(words, 2, "--replace-pattern OP,OP NEW_OP")
    operands, attributes = _split(rest)
    by: Json = {"subgraph": _bytes(op)} if op.endswith(".onnx") else {**_op(op), "attributes": attributes}
    return {"edit": "replace-pattern", "pattern": pattern.split(","), "inputs": operands, **by}


def between(words: list[str]) -> Json:
    """INPUTS OUTPUTS OP, then attributes."""
    inputs, outputs, op, *rest = _at_least(words, 3, "--insert-between INPUTS OUTPUTS OP")
    made = {"edit": "insert-between", "inputs": inputs.split(","), "outputs": outputs.split(",")}
    return {**made, "op": op, "attributes": parse_attributes(rest)}


def set_attribute(words: list[str]) -> Json:
    """NODE NAME=VALUE."""
    node, item = _at_least(words, 2, "--set-attribute NODE NAME=VALUE")[:2]
    if len(words) > 2:
        raise UsageError("--set-attribute takes one attribute: say it again for another")
    name, equals, text = item.partition("=")
    if not name or not equals:
        raise UsageError(f"{shown(item, 80)!r} is not an attribute; write NAME=VALUE, as in axis=1")
    value = parse_attributes([item])[name] if text else None
    return {"edit": "set-attribute", "nodes": [node], "name": name, "value": value}


def debug_outputs(words: list[str]) -> Json:
    """Globs, and op:TYPE."""
    ops = [word.removeprefix("op:") for word in words if word.startswith("op:")]
    return {"edit": "debug-outputs", "names": [w for w in words if not w.startswith("op:")], "ops": ops}


def set_weight(words: list[str]) -> Json:
    """NAME=FILE.npy pairs."""
    pairs = [word.rpartition("=") for word in words]
    if not all(name and path for name, _, path in pairs):
        raise UsageError("--set-weight takes NAME=FILE.npy")
    return {"edit": "set-weight", "weights": {name: _bytes(path) for name, _, path in pairs}}


def add_weight(words: list[str]) -> Json:
    """NAME CONSTANT."""
    value = _operand(words[1])
    if isinstance(value, str):
        raise UsageError(f"{shown(words[1], 80)!r} is not a constant; write it as 2.0 or [1,2]:int64")
    return {"edit": "add-weight", "name": words[0], "value": value}


def precision(words: list[str]) -> Json:
    """A type, nodes, and keep=NODE."""
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
        if match is None:
            return word
        text = match["values"]
        values = text if text in ("inf", "-inf", "nan") else json.loads(text)
        return {"values": values, "dtype": match["dtype"] or "float32"}
    except ValueError:
        return word


def end(word: str) -> Json:
    """`NAME`, `NAME:[DIMS]`, `NAME:TYPE` or `NAME:[DIMS]:TYPE`."""
    match = _END.fullmatch(word)
    assert match is not None
    made: Json = {"name": match["name"]}
    if match["shape"] not in (None, "auto"):
        made["shape"] = parse_dims(match["shape"], word)
    if match["dtype"] not in (None, "auto"):
        made["dtype"] = match["dtype"]
    return made


def sizes(words: Sequence[str]) -> Json:
    """`NAME=SIZE` items."""
    pairs = [word.rpartition("=") for word in words]
    return {name: whole_number(size) for name, _, size in pairs}


def number_or_text(text: str) -> int | str:
    """A whole number where it is one."""
    return int(text) if text.lstrip("-").isdecimal() else text


def whole_number(text: str) -> int:
    """A whole number. UsageError for anything else."""
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{shown(text, 80)!r} is not a whole number") from None


def _at_least(words: list[str], count: int, usage: str) -> list[str]:
    if len(words) < count:
        raise UsageError(f"write {usage} …")
    return words


def json_edit(text: str) -> Json:
    """An edit as JSON. UsageError if it is none."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--edit {shown(text, 120)!r}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"--edit {shown(text, 120)!r}: an edit is a JSON object")
    return value


def _bytes(path: str) -> str:
    place: Path = user_path(path)
    return base64.b64encode(read_file(place, MOST)).decode()
