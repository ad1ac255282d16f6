"""The operators of a module as a plain description, made of what torch.export traced."""

import operator
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.torch.values import is_users


class FxNode(Struct, frozen=True):
    """One operator. name: of the fx node. op: as torch calls it, `aten.linear.default`.

    inputs, outputs: tensors by the names of an FxGraph; "" for an output that nobody reads. scope: the paths of the
    modules that it lies in, outermost first, the module itself ("") left out. line: `file:line` in the module's source.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    scope: tuple[str, ...] = ()
    line: str = ""


class FxGraph(Struct, frozen=True):
    """Operators in the order in which they run.

    A tensor is called by the path of the innermost module and its fx node, `encoder.layer.0.output.dense/linear_3`, of
    the outermost module by the node alone. Inputs go by the names of the runner, weights and buffers by their paths.
    modules: path -> the tensor that a module returned, of those that returned one.
    """

    nodes: tuple[FxNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: frozenset[str]
    modules: dict[str, str]

    def maker(self) -> dict[str, FxNode]:
        """The node that makes each tensor."""
        return {name: node for node in self.nodes for name in node.outputs if name}


class Names:
    """What the nodes of a lifted graph are called. inputs: names of the user's inputs, in the order of the leaves."""

    def __init__(self, program: Any, inputs: list[str]) -> None:
        self.weights: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        left = iter(inputs)
        kinds = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        for node in program.graph.nodes:
            if node.op == "placeholder":
                spec = kinds[node.name]
                if spec.kind.name == "USER_INPUT":
                    self.inputs[node.name] = next(left, node.name)
                else:
                    self.weights[node.name] = str(spec.target or node.name)

    def tensor(self, node: Any) -> str:
        """The name of the tensor that a node gives."""
        known = self.inputs.get(node.name) or self.weights.get(node.name)
        if known:
            return known
        scope = scope_of(node)
        return f"{scope[-1]}/{node.name}" if scope else str(node.name)


def scope_of(node: Any) -> tuple[str, ...]:
    """The paths of the modules that a node lies in, outermost first; of one called twice its second call as such."""
    stack = node.meta.get("nn_module_stack") or {}
    return tuple(path for path, _ in stack.values() if path)


def line_of(node: Any) -> str:
    """`file:line` of the innermost line of the module's source that is not torch's own; "" where nothing is known."""
    lines = (line.strip() for line in reversed((node.meta.get("stack_trace") or "").splitlines()))
    for line in lines:
        if line.startswith("File "):
            file, _, rest = line.removeprefix("File ").partition(", line ")
            if is_users(file.strip('"')):
                return f"{file.strip(chr(34))}:{rest.partition(',')[0]}"
    return ""


def op_of(node: Any) -> str:
    """What a node calls, in torch's words."""
    python = callable(node.target) and not hasattr(node.target, "_schema")
    return str(getattr(node.target, "__name__", node.target)) if python else str(node.target)


def describe(program: Any, names: Names) -> FxGraph:
    """The graph of an exported program."""
    nodes: list[FxNode] = []
    outputs: tuple[str, ...] = ()
    for node in program.graph.nodes:
        if node.op == "output":
            outputs = tuple(names.tensor(each) for each in node.all_input_nodes)
        elif node.op == "call_function" and node.target is not operator.getitem:
            reads = tuple(names.tensor(each) for each in node.all_input_nodes)
            nodes.append(FxNode(node.name, op_of(node), reads, _outputs(node, names), scope_of(node), line_of(node)))
    inputs = tuple(filter(None, names.inputs.values()))
    return FxGraph(tuple(nodes), inputs, outputs, frozenset(names.weights.values()), _modules(program, names))


def _picks(node: Any) -> int | None:
    """Which element of another node's tuple a node stands for, None for all others."""
    picked = node.op == "call_function" and node.target is operator.getitem
    return node.args[1] if picked and isinstance(node.args[1], int) else None


def _outputs(node: Any, names: Names) -> tuple[str, ...]:
    """One tensor, or those that are picked from a tuple, by their places."""
    picked = {place: user for user in node.users if (place := _picks(user)) is not None}
    if not picked or len(picked) < len(node.users):
        return (names.tensor(node),)
    return tuple(names.tensor(picked[i]) if i in picked else "" for i in range(max(picked) + 1))


def _modules(program: Any, names: Names) -> dict[str, str]:
    """The tensor that each module returned: the one of its nodes that others read, where it is one."""
    given: dict[str, list[Any]] = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            for path in scope_of(node):
                if any(path not in scope_of(user) for user in node.users):
                    given.setdefault(path, []).append(node)
    return {path: names.tensor(nodes[0]) for path, nodes in given.items() if len(nodes) == 1}


def last_uses(graph: Any) -> Mapping[Any, list[Any]]:
    """For each node those nodes whose values nobody needs behind it."""
    last: dict[Any, Any] = {}
    for node in graph.nodes:
        for read in (node, *node.all_input_nodes):
            last[read] = node
    found: dict[Any, list[Any]] = {}
    for node, user in last.items():
        found.setdefault(user, []).append(node)
    return found
