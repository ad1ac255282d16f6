"""From a feed to the arguments of a module's forward, and what its inputs are called."""

import inspect
from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch.values import listed, replaced, tensors
from layerwise._tool.backends.torch_bridge import to_array, to_tensor

_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Example:
    """Example arguments of a module: their tensors are its inputs, by the names of forward's parameters."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._args, self._kwargs = list(args), dict(kwargs)
        self._names = _argument_names(module, len(self._args))
        named = [*zip(self._names, self._args, strict=True), *self._kwargs.items()]
        found = dict(pair for name, value in named for pair in tensors(name, value))
        self.feed: dict[str, Array] = {name: to_array(tensor) for name, tensor in found.items()}
        self.inputs = [TensorInfo(name, _dtype(tensor), _shape(tensor)) for name, tensor in found.items()]

    def arguments(self, feed: Mapping[str, Array], device: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with the feed's tensors in place of the example's."""

        def put(name: str, example: Any) -> Any:
            return to_tensor(feed[name]).to(device) if name in feed else example.to(device)

        args = tuple(replaced(name, value, put) for name, value in zip(self._names, self._args, strict=True))
        return args, {name: replaced(name, value, put) for name, value in self._kwargs.items()}

    def names(self, feed: Mapping[str, Array]) -> list[str]:
        """Names of the tensors among the arguments, in order."""
        return [info.name for info in self.inputs]


class ByName:
    """Inputs of a module without example: the feed's tensors go to the parameters of their names, or else in order."""

    def __init__(self, module: Any) -> None:
        self._parameters = _parameters(module)
        self.inputs: list[TensorInfo] = []
        self.feed: dict[str, Array] = {}

    def arguments(self, feed: Mapping[str, Array], device: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments. UsageError where there are more tensors than parameters."""
        made = {name: to_tensor(array).to(device) for name, array in feed.items()}
        known = [name for name, parameter in self._parameters.items() if parameter.kind not in _ANY]
        if set(made) <= set(known):
            return (), made
        open_end = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in self._parameters.values())
        if len(made) > len(known) and not open_end:
            raise UsageError(
                f"forward takes {listed(known) or 'no inputs'}, the feed has {listed([shown(name) for name in made])}; "
                "inputs in lists or dicts need example inputs beside the module, which tell how they belong together"
            )
        return tuple(made.values()), {}

    def names(self, feed: Mapping[str, Array]) -> list[str]:
        """Names of the tensors among the arguments, in order."""
        return list(feed)


def _parameters(module: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):
        return {"args": inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)}


def _argument_names(module: Any, count: int) -> list[str]:
    """Names of the positional arguments: those of the parameters, `args.0`, `args.1`, … of the open end `*args`."""
    names: list[str] = []
    for name, parameter in _parameters(module).items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}.{place}" for place in range(count - len(names))]
        elif parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    if len(names) < count:
        raise UsageError(f"{count} example inputs were returned, forward takes {len(names)}: {listed(names)}")
    return names[:count]


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in tensor.shape)
