"""A module's operators one by one: traced by torch.export, made functional, each called by itself."""

import logging
import operator
import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.graph import FxGraph, Names, describe, fed, given, picks, runs
from layerwise._tool.backends.torch.values import first_sentence
from layerwise._tool.backends.torch_bridge import is_tensor, to_array, to_tensor


class NotTraced(LayerwiseError):
    """torch.export does not take the module."""


class Traced:
    """The operators of a module for inputs of certain shapes.

    program: a functional ExportedProgram. leaves: the tensors and plain values that it was traced with, in order, and
    inputs the name of each, "" for a plain value. outputs: names of the tensors that it returns.
    """

    def __init__(self, program: Any, leaves: Sequence[Any], inputs: list[str], outputs: list[str], device: Any) -> None:
        self._names = Names(program, inputs, outputs)
        self.graph: FxGraph = describe(program, self._names)
        self._program, self._device = program, device
        self._nodes = {node.name: node for node in program.graph.nodes if runs(node)}
        holders = [node for node in program.graph.nodes if node.op == "placeholder"]
        fed_in_order = [node for node in holders if node.name in self._names.inputs]
        self._plain = {node: value for node, value in zip(fed_in_order, leaves, strict=False) if not is_tensor(value)}
        made = [each for node in self._nodes.values() for each in given(node) if each is not None]
        self._numbers = {self._names.tensor(each) for each in made if not is_tensor(each.meta.get("val"))}
        held = {**dict(program.named_buffers()), **dict(program.named_parameters()), **program.state_dict,
                **program.constants}  # fmt: skip
        self._weights = {path: held[path] for path in self._names.weights.values() if path in held}

    def weight(self, name: str) -> Array:
        """The value of a weight or buffer. KeyError for a name that is none."""
        return to_array(self._weights[name])

    def call(self, name: str, env: Mapping[str, Any]) -> list[Any]:
        """What the operator of an fx node gives, in the order of its outputs in the graph, None where nobody reads one.

        env: tensors (torch's, or plain numbers where the module has such) by their names; weights need not be there.
        KeyError for an input that is not there, or an operator that these shapes do not have.
        """
        import torch

        node = self._nodes[name]
        values = {each: self._value(self._names.tensor(each), env) for each in fed(node, self._names)}
        values |= {each: self._of(each) for each in node.all_input_nodes if each not in values}
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            torch.manual_seed(zlib.crc32(name.encode()))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        made = node.target(*args, **kwargs)
        return [each and (made if (place := picks(each)) is None else made[place]) for each in given(node)]

    def part(self, names: Sequence[str], inputs: Mapping[str, Any], gives: Sequence[str]) -> Any:
        """Operators of fx nodes (in order) as an exported program by itself, which holds the weights that they read.

        inputs: the tensors that it is fed with, in order; gives: the names of those that it returns. NotTraced where
        torch does not take it.
        """
        import torch

        graph, root = torch.fx.Graph(), torch.nn.Module()
        known: dict[str, Any] = {}
        for at, (name, value) in enumerate(inputs.items()):
            known[name] = graph.placeholder(f"x{at}") if is_tensor(value) else value
        made: dict[Any, Any] = {}
        for node in (self._nodes[name] for name in names):
            for each in node.all_input_nodes:
                if each not in made:
                    made[each] = self._held_in(graph, root, each, known)
            new = graph.node_copy(node, made.__getitem__)
            for each in given(node):
                if each is not None:
                    place = picks(each)
                    made[each] = new if place is None else graph.call_function(operator.getitem, (new, place))
                    known[self._names.tensor(each)] = made[each]
        graph.output(tuple(known[name] for name in gives))
        fed_with = tuple(value for value in inputs.values() if is_tensor(value))
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                return torch.export.export(torch.fx.GraphModule(root, graph), fed_with, strict=False)
        except Exception as error:
            text = f"{type(error).__name__}: {shown(first_sentence(error), 300)}"
            raise NotTraced(f"torch.export cannot write these operators ({text})") from error

    def _held_in(self, graph: Any, root: Any, node: Any, known: Mapping[str, Any]) -> Any:
        """What stands for a node that is made elsewhere: an input, a weight that the module then holds, or a value."""
        name = self._names.tensor(node)
        if name in known:
            return known[name]
        value = self._weights[name] if name in self._weights else self._of(node)
        if not is_tensor(value) and not hasattr(value, "forward"):
            return value
        place = f"held_{sum(1 for each in graph.nodes if each.op == 'get_attr')}"
        if is_tensor(value):
            root.register_buffer(place, value.detach().clone())
        else:
            setattr(root, place, value)
        return graph.get_attr(place)

    def _value(self, name: str, env: Mapping[str, Any]) -> Any:
        return env[name] if name in env else self._weights[name]

    def _of(self, node: Any) -> Any:
        """A submodule, a constant, or a plain input."""
        if node.op != "get_attr":
            return self._plain[node]
        value = self._program.graph_module
        for part in node.target.split("."):
            value = getattr(value, part)
        return value

    def put(self, name: str, array: Array) -> Any:
        """An array as operators take it: on the device, or as a number where the module has one."""
        return array.item() if name in self._numbers else to_tensor(array).to(self._device)


def trace(
    module: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    inputs: list[str],
    outputs: list[str],
    device: Any,
    program: Any = None,
) -> Traced:
    """Trace a module with these inputs. NotTraced, with what torch says, where it cannot be.

    inputs, outputs: names of the tensors among them, and of those returned, in order. program: the exported program
    that the module is of.
    """
    import torch

    for name in ("torch.export", "torch._export", "torch.fx", "torch._dynamo"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    leaves = torch.utils._pytree.tree_leaves((args, dict(kwargs)))
    left = iter(inputs)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            made = program or torch.export.export(module, args, dict(kwargs), strict=False)
            made = made.run_decompositions({})
    except Exception as error:
        text = f"{type(error).__name__}: {shown(first_sentence(error), 300)}"
        raise NotTraced(f"torch.export cannot trace it ({text})") from error
    return Traced(made, leaves, [next(left, "") if is_tensor(leaf) else "" for leaf in leaves], outputs, device)
