"""Operators by reference: those of this module, and those that a script registers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from layerwise.exception import LayerwiseError
from layerwise.mod.importer import lazy_import

gs = lazy_import("onnx_graphsurgeon")
Reference = Callable[..., Sequence[Any]]
OP_REGISTRY: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {}
"""Operator -> function of a node of onnx-graphsurgeon and the tensors computed so far; it returns those of the node."""


def register(op: str) -> Callable[[Reference], Callable[[Any, Mapping[str, Any]], dict[str, Any]]]:
    """A decorator for the reference of an operator: a function of its attributes and inputs (None for one that is left
    out) that returns a list of outputs. The function gets into OP_REGISTRY.
    """

    def registered(func: Reference) -> Callable[[Any, Mapping[str, Any]], dict[str, Any]]:
        def run(node: Any, intermediate_tensors: Mapping[str, Any]) -> dict[str, Any]:
            outputs = func(node.attrs, *(_value(tensor, intermediate_tensors) for tensor in node.inputs))
            if len(outputs) != len(node.outputs):
                raise LayerwiseError(
                    f"{op} reference implementation returned the wrong number of outputs: {len(outputs)}, the node has "
                    f"{len(node.outputs)}"
                )
            return {tensor.name: value for tensor, value in zip(node.outputs, outputs, strict=True)}

        run.__name__, run.__doc__ = func.__name__, func.__doc__
        OP_REGISTRY[op] = run
        return run

    return registered


def _value(tensor: Any, computed: Mapping[str, Any]) -> Any:
    if tensor.is_empty():
        return None
    return tensor.values if isinstance(tensor, gs.Constant) else computed[tensor.name]


@register("Identity")
def run_identity(attrs: Mapping[str, Any], x: Any) -> Sequence[Any]:
    """Its input."""
    return [x]


@register("InstanceNormalization")
def run_instancenorm(attrs: Mapping[str, Any], x: Any, weights: Any, bias: Any) -> Sequence[Any]:
    """Normalised over the axes from the third on; epsilon is 1e-5 by default."""
    axes = tuple(range(2, x.ndim))
    spread = np.sqrt(x.var(axis=axes, keepdims=True) + attrs.get("epsilon", 1e-5))
    per_channel = (-1, *(1,) * len(axes))
    return [(x - x.mean(axis=axes, keepdims=True)) / spread * weights.reshape(per_channel) + bias.reshape(per_channel)]


@register("MeanVarianceNormalization")
def run_meanvarnorm(attrs: Mapping[str, Any], x: Any) -> Sequence[Any]:
    """Normalised over the axes, all but the second by default."""
    axes = tuple(attrs.get("axes", (0, 2, 3)))
    mean = x.mean(axis=axes, keepdims=True)
    spread = np.sqrt((x**2).mean(axis=axes, keepdims=True) - mean**2)
    return [(x - mean) / (spread + 1e-9)]
