"""The operators of a module as a plain description, made of what torch.export traced."""

import operator
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.torch.values import is_users


class FxNode(Struct, frozen=True):
    """One operator. name: of the fx node. op: as torch calls it, `aten.linear`.

    inputs, outputs: tensors by the names of an FxGraph, as `Traced.call` takes and gives them; "" for an output that
    nobody reads. attributes: what else it is called with, as text. scope: the paths of the modules that it lies in,
    outermost first, the module itself ("") left out. line: of the module's source, as a stack has it.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, str] = {}
    scope: tuple[str, ...] = ()
    line: str = ""


class FxGraph(Struct, frozen=True):
    """Operators in the order in which they run.

    A tensor is called by the path of the innermost module and its fx node, `encoder.layer.0.output.dense/linear_3`; in
    the outermost module by the node alone. Inputs go by the names of the runner, weights and buffers by their paths.
    inputs, weights, tensors: with types and shapes; tensors: what operators give.
    """

    nodes: tuple[FxNode, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    weights: tuple[TensorInfo, ...]
    tensors: dict[str, TensorInfo]


class Names:
    """What the tensors of a program's graph are called.

    inputs: names of the user's inputs, "" for plain values. outputs: names of the tensors that the user gets.
    """

    def __init__(self, program: Any, inputs: list[str], outputs: list[str]) -> None:
        made = {node.name for node in program.graph.nodes if node.op == "call_function"}
        specs = [spec for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
        tensors = [spec.arg.name for spec in specs if type(spec.arg).__name__ == "TensorArgument"]
        self.outputs = {name: given for name, given in zip(reversed(tensors), reversed(outputs), strict=False)
                        if name in made} if len(tensors) == len(outputs) else {}  # fmt: skip
        self.weights: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        left = iter(inputs)
        kinds = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        for node in program.graph.nodes:
            if node.op == "placeholder":
                spec = kinds[node.name]
                if spec.kind.name == "USER_INPUT":
                    self.inputs[node.name] = next(left, "")
                else:
                    self.weights[node.name] = str(spec.target or node.name)

    def tensor(self, node: Any) -> str:
        """The name of the value of a node; "" for a plain input."""
        if node.name in self.outputs:
            return self.outputs[node.name]
        if node.name in self.inputs:
            return self.inputs[node.name]
        if node.name in self.weights:
            return self.weights[node.name]
        place = picks(node)
        if place is not None:
            return self.tensor(node.args[0]) + (f".{place}" if place else "")
        scope = scope_of(node)
        return f"{scope[-1]}/{node.name}" if scope else str(node.name)


def picks(node: Any) -> int | None:
    """Which element of another node's tuple a node stands for, None for all others."""
    picked = node.op == "call_function" and node.target is operator.getitem
    return node.args[1] if picked and isinstance(node.args[1], int) else None


def runs(node: Any) -> bool:
    """Whether a node computes something that others, or the outputs, read."""
    return node.op == "call_function" and picks(node) is None and len(node.users) > 0


def fed(node: Any, names: Names) -> list[Any]:
    """The nodes whose values a node is fed with: not submodules, nor plain inputs, which are as they were."""
    return [each for each in node.all_input_nodes if each.op != "get_attr" and names.tensor(each)]


def given(node: Any) -> list[Any]:
    """The nodes that stand for what a node gives: itself, or those that pick from its tuple; None where none does."""
    picked = {place: user for user in node.users if (place := picks(user)) is not None}
    return [picked.get(i) for i in range(max(picked) + 1)] if picked else [node]


def scope_of(node: Any) -> tuple[str, ...]:
    """The paths of the modules that a node lies in, outermost first."""
    stack = node.meta.get("nn_module_stack") or {}
    return tuple(path for path, _ in stack.values() if path)


def describe(program: Any, names: Names) -> FxGraph:
    """The graph of an exported program."""
    nodes, outputs, tensors = [], tuple[str, ...](), dict[str, TensorInfo]()
    for node in program.graph.nodes:
        if node.op == "output":
            outputs = _outputs(program, node, names)
        elif runs(node):
            made = given(node)
            nodes.append(
                FxNode(
                    node.name,
                    _op(node),
                    tuple(names.tensor(each) for each in fed(node, names)),
                    tuple(names.tensor(each) if each is not None else "" for each in made),
                    _attributes(node),
                    scope_of(node),
                    _line(node),
                )
            )
            tensors.update((names.tensor(each), _info(each, names)) for each in made if each is not None)
    holders = [node for node in program.graph.nodes if node.op == "placeholder"]
    inputs = tuple(_info(node, names) for node in holders if names.inputs.get(node.name))
    weights = tuple(_info(node, names) for node in holders if node.name in names.weights and node.users)
    return FxGraph(tuple(nodes), inputs, outputs, weights, tensors)


def _outputs(program: Any, node: Any, names: Names) -> tuple[str, ...]:
    """The tensors that the user gets."""
    wanted = {spec.arg.name for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"
              and hasattr(spec.arg, "name")}  # fmt: skip
    return tuple(dict.fromkeys(names.tensor(each) for each in node.all_input_nodes if each.name in wanted))


def _info(node: Any, names: Names) -> TensorInfo:
    value = node.meta.get("val")
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", ())
    kind = {"SymInt": "int64", "int": "int64", "SymBool": "bool", "bool": "bool"}.get(type(value).__name__, "float64")
    sizes = tuple(int(size) if isinstance(size, int) else None for size in shape)
    return TensorInfo(names.tensor(node), str(dtype).removeprefix("torch.") if dtype is not None else kind, sizes)


def _op(node: Any) -> str:
    """What a node calls, in torch's words."""
    python = not hasattr(node.target, "_schema")
    return str(getattr(node.target, "__name__", node.target)) if python else str(node.target).removesuffix(".default")


def _attributes(node: Any) -> dict[str, str]:
    """Arguments that are no tensors, by the names that the operator's schema has for them."""
    schema = getattr(node.target, "_schema", None)
    known = [argument.name for argument in schema.arguments] if schema is not None else []
    named = {known[i] if i < len(known) else f"arg{i}": value for i, value in enumerate(node.args)} | dict(node.kwargs)
    return {name: text for name, value in named.items() if "%" not in (text := _text(value)) and text != "None"}


def _text(value: Any) -> str:
    """An argument as text, a node in it as `%`."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return "%" if hasattr(value, "all_input_nodes") else str(value).removeprefix("torch.")


def _line(node: Any) -> str:
    """`File "…", line …`, the innermost that is not torch's own; "" where nothing is known."""
    lines = (line.strip() for line in reversed((node.meta.get("stack_trace") or "").splitlines()))
    for line in lines:
        if line.startswith('File "'):
            file, _, rest = line.removeprefix('File "').partition('", line ')
            if is_users(file):
                return f'File "{file}", line {rest.partition(",")[0]}'
    return ""
