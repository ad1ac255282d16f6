"""Names of nodes in ONNX's text form, `[name] y = Op(x)`, for onnx 1.16, which cannot read them."""

import re
from collections.abc import Callable, Iterable

import onnx
from onnx import parser

_KEY = "layerwise_name"
_NAMED = re.compile(r"(?m)(?<=[\s{])\[([^\]\s]+)\]\s+([\w ,/.]*=\s*[\w.]+)[ \t]*(<|\([^()]*\)[ \t]*<)?")


def teach_names() -> None:
    """Have `onnx.parser.parse_model` and `parse_graph` read names."""
    try:
        parser.parse_graph("g (float[1] x) => (float[1] y) { [a] y = Relu(x) }")
    except parser.ParseError:
        parser.parse_model = _reading(parser.parse_model, lambda model: [model.graph, *model.functions])
        parser.parse_graph = _reading(parser.parse_graph, lambda graph: [graph])


def _reading(parse: Callable, graphs: Callable) -> Callable:
    def read(text: str) -> object:
        found = parse(_NAMED.sub(_as_attribute, text))
        _name(graphs(found))
        return found

    return read


def _as_attribute(named: re.Match[str]) -> str:
    name, head, more = named.groups()
    return f'{head}{more or "<"}{_KEY}="{name}"{", " if more else ">"}'


def _name(graphs: Iterable[onnx.GraphProto | onnx.FunctionProto]) -> None:
    for graph in graphs:
        for node in graph.node:
            for attribute in list(node.attribute):
                if attribute.name == _KEY:
                    node.name = attribute.s.decode()
                    node.attribute.remove(attribute)
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    _name([attribute.g])
