"""The output of `inspect model` for an ONNX model: text in Polygraphy's layout.

Intentional differences: a tensor whose rank is unknown shows no shape (Polygraphy: an empty one), types
that Polygraphy has no name for are named, control characters are escaped, lists of over 1000 values are cut
short.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import Value
from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.backends.type_names import type_name
from layerwise._tool.surgery.inspect.view import Elided, GraphView, array_text, open_view

TAB = " " * 4


def describe_model(
    model: ModelFile, show: Collection[str] = (), shape_inference: bool = False, module: str = ""
) -> Iterator[str]:
    """Yield the lines of the description, the first one a heading, the others indented below it.

    show: any of "layers", "attrs" (with layers only), "weights", "modules". module: only nodes in modules so named.
    BadFile if the bytes do not fit the format, LayerwiseError if no node is in `module`.
    """
    structure = model.structure_bytes()
    if shape_inference:
        from layerwise._tool.surgery.types.infer import inferred_structure

        structure = inferred_structure(structure)[0]
    yield "==== ONNX Model ===="
    try:
        yield from body(_model_lines(model, structure, show, module))
    except WireError as error:
        raise BadFile(model.path, f"damaged ONNX model: {error}") from error


def body(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines one tab further in, without trailing empty ones."""
    blank: list[str] = []
    for line in lines:
        if not line.strip():
            blank.append(TAB + line)
            continue
        yield from blank
        blank.clear()
        yield TAB + line


def _model_lines(model: ModelFile, structure: bytes, show: Collection[str], module: str) -> Iterator[str]:
    view, head = open_view(model, structure)
    nodes = [(i, node) for i, node, _ in view.nodes_in(module)] if module else enumerate(view.nodes())
    others = {shown(domain): version for domain, version in head.opsets.items() if domain}
    title = f"Name: {shown(view.name)} | ONNX Opset: {head.opsets.get('', 'Unknown')}"
    yield title + (f" | Other Opsets: {others}" if others else "")
    yield ""
    yield from _graph_lines(view, show, "Graph", 0, nodes)
    if "modules" in show:
        from layerwise._tool.surgery.inspect.modules import module_lines

        yield from module_lines(view.origins(), module)


def _graph_lines(
    view: GraphView, show: Collection[str], prefix: str, level: int, nodes: Iterable[tuple[int, Node]]
) -> Iterator[str]:
    if "attrs" in show and view.doc:
        yield from ("---- Docstring ----", *shown_lines(view.doc).splitlines(), "")
    for what, values in (("Input", view.inputs), ("Output", view.outputs)):
        yield f"---- {len(values)} {prefix} {what}(s) ----"
        yield from braced(_tensor_text(v, shown(v.name)) for v in values)
        yield ""
    yield f"---- {len(view.initializers)} Initializer(s) ----"
    if "weights" in show:
        yield from _weight_lines(view)
    elif "layers" in show:
        yield from braced(_tensor_text(view.value(t.name), shown(t.name)) for t in view.initializers)
    if not ("weights" in show and view.initializers):
        yield ""
    yield f"---- {view.n_nodes} Node(s) ----"
    if "layers" in show:
        label = cache(partial(_labelled, view))  # most tensors are named by their producer and a reader
        for index, node in nodes:
            yield from _node_lines(node, index, label)
            if "attrs" in show and node.attributes:
                yield f"{TAB}---- Attributes ----"
                yield from _attribute_lines(view, node, show, level)
            yield ""


def _weight_lines(view: GraphView) -> Iterator[str]:
    for tensor in view.initializers:
        head = f"[dtype={type_name(tensor.dtype)}, shape={tensor.dims}]"
        yield f"Initializer | {shown(tensor.name)} {head} | Values:"
        yield from indented(array_text(view, tensor).splitlines(), 1)
        yield ""
    if not view.initializers:
        yield "{}"


def _node_lines(node: Node, index: int, label: Callable[[str], str]) -> Iterator[str]:
    head = f"Node {index:<4} | {shown(node.name)} [Op: {shown(node.op)}]"
    yield from entry_lines(head, [label(name) for name in node.inputs], [label(name) for name in node.outputs])


def entry_lines(head: str, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a node or layer: its heading, its inputs, its outputs."""
    yield head
    read, made = list(braced(inputs)), list(braced(outputs))
    if inputs and outputs:
        yield from indented(read, 1)
        yield f"{TAB} -> {made[0]}"
        yield from indented(made[1:], 2)
    else:
        yield from indented(read[:-1], 1)
        yield f"{TAB}{read[-1]} -> {made[0]}"
        yield from made[1:]


def _labelled(view: GraphView, name: str) -> str:
    prefix = "Initializer | " if name in view.initializer_names else ""
    return _tensor_text(view.value(name), prefix + shown(name))


def _tensor_text(value: Value, label: str) -> str:
    facts = [f"dtype={value.kind}"] if value.kind else []
    if value.shape is not None:
        facts.append(f"shape={tuple(-1 if d is None else d for d in value.shape)}")
    return f"{label} [{', '.join(facts)}]".strip() if facts else label.strip()


def braced(items: Iterable[str]) -> Iterator[str]:
    """Yield the lines of "{first,", " second,", …, " last}"."""
    previous = "{"
    for i, item in enumerate(items):
        if i:
            yield previous + ","
            previous = " "
        previous += item
    yield previous + "}"


def _attribute_lines(view: GraphView, node: Node, show: Collection[str], level: int) -> Iterator[str]:
    for name, value in view.attributes(node):
        label = f"{shown(node.name)}.{shown(name)}" if node.name else shown(name)
        if isinstance(value, GraphView):
            yield f"{TAB}{label} = "
            inner = _graph_lines(value, show, "Subgraph", level + 2, enumerate(value.nodes()))
            yield from indented(inner, level + 3)
        elif isinstance(value, TensorRecord):
            yield from indented(_tensor_lines(view, label, value, show), 1)
        else:
            yield f"{TAB}{label} = {attribute_text(value)}"


def _tensor_lines(view: GraphView, label: str, tensor: TensorRecord, show: Collection[str]) -> Iterator[str]:
    head = f"{label} = Tensor: [dtype={type_name(tensor.dtype)}, shape={tensor.dims}]"
    if "weights" not in show:
        yield head
        return
    yield f"{head} | Values:"
    yield from indented(array_text(view, tensor).splitlines(), 1)


def attribute_text(value: Any) -> str:
    """Return an attribute's value on one line, as Python writes it; strings unchanged."""
    if isinstance(value, Elided):
        items = ", ".join(repr(v) if isinstance(v, str) else attribute_text(v) for v in value.values)
        more = f", … ({value.total} in all)" if value.total > len(value.values) else ""
        return f"[{shown(items)}{more}]"
    if isinstance(value, TensorRecord):
        return f"Tensor: [dtype={type_name(value.dtype)}, shape={value.dims}]"
    if isinstance(value, GraphView):
        return f"Subgraph: {shown(value.name, 200)} ({value.n_nodes} nodes)"
    return shown(str(value))


def indented(lines: Iterable[str], level: int) -> Iterator[str]:
    """Yield the lines, `level` tabs further in."""
    for line in lines:
        yield TAB * level + line
