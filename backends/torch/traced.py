"""A module's operators one by one: traced by torch.export, run by an interpreter that forgets what nobody needs."""

import logging
import operator
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.graph import FxGraph, Names, describe, last_uses
from layerwise._tool.backends.torch.values import first_sentence, tensors
from layerwise._tool.backends.torch_bridge import is_tensor, to_array, to_tensor


class NotTraced(LayerwiseError):
    """torch.export does not take the module."""


class Traced:
    """The graph of a module for inputs of certain shapes.

    program: an ExportedProgram; args, kwargs: what it was traced with, inputs: names of the tensors among them.
    """

    def __init__(self, program: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], inputs: list[str]) -> None:
        import torch

        self.program = program
        leaves = torch.utils._pytree.tree_leaves((args, dict(kwargs)))
        names = iter(inputs)
        self._names = Names(program, [next(names, "") if is_tensor(leaf) else "" for leaf in leaves])
        self.graph: FxGraph = describe(program, self._names)
        self._nodes = {node.name: node for node in program.graph.nodes}
        self._forget = last_uses(program.graph)
        self._plain: dict[str, Any] = {}

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Run all operators, giving each tensor under its name as it is made."""
        env = dict(self._bound(args, kwargs))
        for node in self.program.graph.nodes:
            if node.op in ("call_function", "get_attr"):
                value = self._value(node, env)
                env[node] = value
                if is_tensor(value):
                    if node.op == "call_function":
                        yield self._names.tensor(node), value
                elif not any(True for _ in tensors("", value)):
                    self._plain[node.name] = value
            for dead in self._forget.get(node, ()):
                env.pop(dead, None)

    def alone(self, name: str, given: Mapping[str, Array], device: Any) -> dict[str, Array]:
        """What one operator gives of these inputs, by the names of its outputs.

        name: of its fx node; given: tensors by name. KeyError for one that it reads and that is not there.
        """
        node = self._nodes[name]
        weights = self._weights()
        env: dict[Any, Any] = {}
        for read in node.all_input_nodes:
            tensor = self._names.tensor(read)
            if read.op == "get_attr":
                env[read] = self._value(read, env)
            elif tensor in self.graph.weights:
                env[read] = weights[read.name]
            elif tensor in given:
                env[read] = to_tensor(given[tensor]).to(device)
            else:
                env[read] = self._plain[read.name]
        value = self._value(node, env)
        if is_tensor(value):
            return {self._names.tensor(node): to_array(value)}
        picked = {user: user.args[1] for user in node.users if user.target is operator.getitem}
        return {self._names.tensor(user): to_array(value[place]) for user, place in picked.items()
                if is_tensor(value[place])}  # fmt: skip

    def _weights(self) -> dict[str, Any]:
        """Weights, buffers and constants by the names of their placeholders."""
        program = self.program
        held = {**dict(program.named_buffers()), **dict(program.named_parameters()), **program.state_dict,
                **program.constants}  # fmt: skip
        return {name: held[path] for name, path in self._names.weights.items() if path in held}

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        import torch

        leaves = iter(torch.utils._pytree.tree_leaves((args, dict(kwargs))))
        weights = self._weights()
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                if node.name in self._names.inputs:
                    value = next(leaves)
                    if not is_tensor(value):
                        self._plain[node.name] = value
                    yield node, value
                else:
                    yield node, weights.get(node.name)

    def _value(self, node: Any, env: Mapping[Any, Any]) -> Any:
        import torch

        if node.op == "get_attr":
            value = self.program.graph_module
            for part in node.target.split("."):
                value = getattr(value, part)
            return value
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: env[each])
        return node.target(*args, **kwargs)


def trace(
    module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], inputs: list[str], program: Any = None
) -> Traced:
    """Trace a module with these inputs. NotTraced, with what torch says, where it cannot be.

    program: the exported program that the module is of, which is taken as it is.
    """
    import torch

    if program is not None:
        return Traced(program, args, kwargs, inputs)
    for name in ("torch.export", "torch._export", "torch.fx", "torch._dynamo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            made = torch.export.export(module, args, dict(kwargs), strict=False)
    except Exception as error:
        text = f"{type(error).__name__}: {shown(first_sentence(error), 300)}"
        raise NotTraced(f"torch.export cannot trace it ({text})") from error
    return Traced(made, args, kwargs, inputs)
