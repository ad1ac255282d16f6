"""Options of `surgeon edit`, each an edit in the order they are typed, as the JSON that `surgery.edits` reads."""

import argparse
from collections.abc import Callable
from typing import Any

from layerwise._tool.tui.cli.parser import Parser
from layerwise._tool.tui.cli.surgeon import edit_makers as make
from layerwise._tool.tui.cli.values import parse_map

Maker = Callable[[list[str]], make.Json]


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

    add("--delete", make.delete, "+", "NODE", "delete nodes; who read them reads what they read (OUTPUT=INPUT: which)")
    add("--bypass", lambda w: {"edit": "bypass", "ops": w}, "+", "OP", "delete all nodes of these types the same way")
    add("--insert", make.insert, "+", "WORD", "TENSOR OP [OPERAND…] [NAME=VALUE…]: a node on a tensor; an operand is a "
        "tensor, or a constant as 2.0 or [1,2]:int64")  # fmt: skip
    add("--add-node", make.add_node, "+", "WORD", "OP OUTPUT [OPERAND…] [NAME=VALUE…]: a node that makes a new tensor")
    add("--replace", make.replace, "+", "WORD", "NODE OP [OPERAND…] [NAME=VALUE…]: another node in its place")
    add("--replace-pattern", make.pattern, "+", "WORD", "OP,OP,… NEW_OP [OPERAND…] [NAME=VALUE…]: a node in place "
        "of each such chain; $1.0 is input 0 of its second node; FILE.onnx for NEW_OP is a subgraph")  # fmt: skip
    add("--insert-between", make.between, "+", "WORD", "INPUT,… OUTPUT,… OP [NAME=VALUE…]: a node in the place of all "
        "that lies between")  # fmt: skip
    add("--set-attribute", make.set_attribute, "+", "WORD", "NODE NAME=VALUE…; NAME= removes it")
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
    add("--debug-outputs", make.debug_outputs, "*", "GLOB", "make many tensors outputs: by name, op:TYPE, or all")
    add("--set-outputs", lambda w: {"edit": "set-outputs", "outputs": list(map(make.end, w))}, "+",
        "NAME[:SHAPE][:TYPE]", "these outputs instead")  # fmt: skip
    add("--set-inputs", lambda w: {"edit": "set-inputs", "inputs": list(map(make.end, w))}, "+", "NAME[:SHAPE][:TYPE]",
        "feed these tensors; what made them goes")  # fmt: skip
    add("--add-input", lambda w: {"edit": "add-input", "input": make.end(w[0])}, 1, "NAME:SHAPE:TYPE", "one more input")
    add("--remove-inputs", lambda w: {"edit": "remove-input", "tensors": w}, "*", "NAME", "inputs that nothing reads")
    add("--set-shape", lambda w: {"edit": "set-shape", "tensors": list(map(make.end, w))}, "+", "NAME:[DIMS]",
        "other shapes of inputs; names are dynamic lengths")  # fmt: skip
    add("--set-batch", lambda w: {"edit": "set-batch", "batch": make.number_or_text(w[0])}, 1, "SIZE",
        "the first dimension of all inputs")  # fmt: skip
    add("--freeze-dims", lambda w: {"edit": "freeze-dims", "dims": make.sizes(w)}, "+", "NAME=SIZE",
        "numbers in the place of dynamic lengths")  # fmt: skip
    add("--upper-bounds", lambda w: {"edit": "upper-bounds", "bounds": parse_map(w, int, "an upper bound")}, "+",
        "[TENSOR:]SIZE", "limit tensors that size others without a limit")  # fmt: skip


def _whole(parser: Parser) -> None:
    group = parser.add_argument_group("Edits of weights and of the whole model")

    def add(flag: str, maker: Maker, nargs: str | int, metavar: Any, text: str) -> None:
        group.add_argument(flag, action=EditFlag, const=maker, nargs=nargs, metavar=metavar, help=text, dest="edits")

    def plain(flag: str, text: str) -> None:
        add(f"--{flag}", lambda w: {"edit": flag}, 0, None, text)

    add("--set-weight", make.set_weight, "+", "NAME=FILE.npy", "other values for weights")
    add("--add-weight", make.add_weight, 2, ("NAME", "CONSTANT"), "a weight that nothing reads yet")
    add("--sparsify", lambda w: {"edit": "sparsify", "weights": w}, "*", "NAME", "2:4 sparse weights; all by default")
    plain("clean-up", "leave out what no output needs")
    plain("toposort", "put nodes in an order in which they can run")
    plain("deduplicate", "one of each set of equal nodes and weights")
    plain("infer-shapes", "declare types and shapes of inner tensors")
    add("--extract", lambda w: {"edit": "extract", "nodes": w}, "+", "NODE", "these nodes alone (`surgeon extract` "
        "takes tensors)")  # fmt: skip
    add("--fold", lambda w: {"edit": "fold"}, 0, None, "fold constants (`surgeon sanitize` has all options)")
    add("--convert-precision", make.precision, "+", "WORD", "float16 or bfloat16 [NODE…] [keep=NODE…]")
    add(
        "--set-opset",
        lambda w: {"edit": "set-opset", "version": make.whole_number(w[0])},
        1,
        "VERSION",
        "another opset",
    )
    add(
        "--edit",
        lambda w: make.json_edit(w[0]),
        1,
        "JSON",
        'any edit, as {"edit": "set-op", "nodes": ["n"], "op": "Relu"}',
    )
    add("--edits", lambda w: {"file": w[0]}, 1, "FILE", "the edits of a JSON file, or of the app's history of a model")
