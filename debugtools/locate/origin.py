"""Where a node comes from in PyTorch: its module, and the line of Python, as exporters and our own tracing note it."""

import re
from collections.abc import Sequence

import onnx

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.graph import AlignNode
from layerwise._tool.debugtools.align.onnx_graph import scope_of
from layerwise._tool.debugtools.compare.aligning.scopes import module_of

_METADATA = "pkg.torch.onnx."
_FRAME = re.compile(r'File "([^"\n]{1,500})", line (\d{1,9})')
_INSTALLED = ("/site-packages/torch/", "/dist-packages/torch/")
_LONGEST = 100_000  # characters of a stack
_TOLD = 3


def is_torch(node: onnx.NodeProto) -> bool:
    """Whether it is an operator of a PyTorch module, not of an ONNX model."""
    return bool(node.domain == "torch")


def lines_of(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """`of module PATH` and `written at FILE:LINE`, where any of the nodes of an exported model tells."""
    found = dict.fromkeys(place for node in nodes if (place := _place(node)))
    modules = dict.fromkeys(path for node in nodes if not is_torch(node) and (path := _module(node)))
    told = [f"of module {', '.join(shown(path, 120) for path in list(modules)[:_TOLD])}"] if modules else []
    if not found:
        return told
    more = f" and {len(found) - _TOLD} more lines" if len(found) > _TOLD else ""
    return [*told, f"written at {', '.join(shown(place, 300) for place in list(found)[:_TOLD])}{more}"]


def _module(node: onnx.NodeProto) -> str:
    """The path of the innermost module that an exporter noted, "" where it noted none."""
    return module_of(AlignNode(node.op_type, (), (), node.name, scope_of(node)))


def _place(node: onnx.NodeProto) -> str:
    """The innermost line of the stack that is not torch's own."""
    stack = next((each.value for each in node.metadata_props if each.key == f"{_METADATA}stack_trace"), "")
    frames = _FRAME.findall(stack[-_LONGEST:])
    own = [(file, line) for file, line in frames if not any(part in file for part in _INSTALLED)]
    return f"{own[-1][0]}:{own[-1][1]}" if own else ""


def calls(nodes: Sequence[onnx.NodeProto]) -> str:
    """What the nodes compute, with their attributes, in a few words."""
    told = [_call(node) for node in nodes if node.op_type not in ("Identity", "Constant")]
    more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
    return f"{', '.join(told[:_TOLD])}{more}"


def _call(node: onnx.NodeProto) -> str:
    values = [f"{shown(each.name, 40)} {_value(each)}" for each in node.attribute]
    told = [text for text in values if not text.endswith(" ")]
    arguments = f" ({', '.join(told)})" if told else ""
    return f"{shown(node.op_type, 60)}{arguments}"


def _value(attribute: onnx.AttributeProto) -> str:
    """A plain attribute as text; "" for tensors and graphs."""
    kinds = onnx.AttributeProto
    if attribute.type == kinds.FLOAT:
        return f"{attribute.f:.6g}"
    if attribute.type == kinds.INT:
        return str(attribute.i)
    if attribute.type == kinds.STRING:
        return shown(attribute.s.decode("utf-8", "replace"), 60)
    return shown(str(list(attribute.ints)), 60) if attribute.type == kinds.INTS else ""
