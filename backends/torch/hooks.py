"""What every module inside a module returns, seen by forward hooks: where its operators cannot be traced."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import TensorInfo, dtype_name
from layerwise._tool.backends.torch.graph import FxGraph, FxNode
from layerwise._tool.backends.torch.values import output_tensors, tensors
from layerwise._tool.backends.torch_bridge import to_array, to_tensor


class Hooked:
    """The modules inside a module as if they were its operators, with what each returned in one run.

    A module's tensor is called by its path, `path.0`, `path.key`, … where it returns several; at its second call
    `path#2`. It reads the inputs and modules' tensors that it was called with; what Python makes between modules is not
    seen. Nothing can be run by itself.
    """

    def __init__(self, graph: FxGraph, values: dict[str, dict[str, Array]]) -> None:
        self.graph, self._values = graph, values

    def weight(self, name: str) -> Array:
        raise KeyError(name)

    def put(self, name: str, array: Array) -> Any:
        return to_tensor(array)

    def call(self, name: str, env: Mapping[str, Any]) -> list[Any]:
        """What a module returned, by the name of its node. KeyError for one that these inputs did not reach."""
        return [to_tensor(array) for array in self._values[name].values()]


class Recorder:
    """Collects, in one run, the calls of the modules inside a module."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._known = {id(tensor): name for name, tensor in inputs.items()}
        self._kept: list[Any] = list(inputs.values())  # so that no other tensor gets their id
        self._calls: dict[str, int] = {}
        self.nodes: list[FxNode] = []
        self.values: dict[str, dict[str, Array]] = {}

    def hook(self, path: str) -> Any:
        """The forward hook of the module at `path`."""

        def take(part: Any, args: Any, kwargs: Any, output: Any) -> None:
            self._calls[path] = self._calls.get(path, 0) + 1
            name = path if self._calls[path] == 1 else f"{path}#{self._calls[path]}"
            reads = [self._known.get(id(tensor)) for _, tensor in tensors("", [args, kwargs])]
            made = dict(tensors(name, output))
            if not made:
                return
            self.values[name] = {key: to_array(tensor) for key, tensor in made.items()}
            inputs = tuple(dict.fromkeys(read for read in reads if read and read not in made))
            scope = tuple(path.rsplit(".", count)[0] for count in range(path.count("."), 0, -1))
            self.nodes.append(FxNode(name, type(part).__name__, inputs, tuple(made), scope=scope))
            for key, tensor in made.items():
                self._known.setdefault(id(tensor), key)
                self._kept.append(tensor)

        return take

    def name_of(self, tensor: Any) -> str:
        """What a tensor was called when it was seen, "" if it was not."""
        return self._known.get(id(tensor), "")


def record(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], inputs: list[str]) -> Hooked:
    """Run a module once and return what the modules inside it give. inputs: names of the tensors it is called with."""
    given = [tensor for _, tensor in tensors("", [list(args), dict(kwargs)])]
    recorder = Recorder(dict(zip(inputs, given, strict=True)))
    handles = [part.register_forward_hook(recorder.hook(path), with_kwargs=True)
               for path, part in module.named_modules() if path]  # fmt: skip
    try:
        returned = output_tensors(module(*args, **kwargs))
    finally:
        for handle in handles:
            handle.remove()
    own = {seen: name for name, tensor in returned.items() if (seen := recorder.name_of(tensor)) not in ("", *inputs)}
    made = {own.get(key, key): array for values in recorder.values.values() for key, array in values.items()}
    infos = {name: TensorInfo(name, dtype_name(array), array.shape) for name, array in made.items()}
    nodes = tuple(_renamed(node, own) for node in recorder.nodes)
    fed = [TensorInfo(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
           for name, tensor in zip(inputs, given, strict=True)]  # fmt: skip
    return Hooked(FxGraph(nodes, tuple(fed), tuple(own.values()), (), infos), recorder.values)


def _renamed(node: FxNode, own: Mapping[str, str]) -> FxNode:
    """A node with the tensors that the user gets under the names that they have there."""
    inputs, outputs = (tuple(own.get(name, name) for name in names) for names in (node.inputs, node.outputs))
    return replace(node, inputs=inputs, outputs=outputs)
