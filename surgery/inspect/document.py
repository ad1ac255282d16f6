"""The output of `inspect model` for an ONNX model as a dictionary, and the job action behind that command."""

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import Value
from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.surgery.inspect.text import describe_model
from layerwise._tool.surgery.inspect.view import Elided, GraphView, open_view
from layerwise._tool.surgery.types.infer import inferred_structure

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

VALUE_LIMIT = 1000
_EVENT_CHARACTERS = 3000  # an event of the journal is at most 4 KB


def describe_model_json(
    model: ModelFile, show: Collection[str] = (), shape_inference: bool = False, module: str = ""
) -> dict[str, Any]:
    """Return name, opsets, inputs, outputs, counts and what `show` requests ("layers", "attrs", "weights", "modules").

    Nodes have module, source_node and source (a Python line) where the exporter noted them. module: only nodes in
    modules so named; LayerwiseError if there are none.
    Values are given for tensors of at most 1000 elements, with NaN and infinities as floats.
    BadFile if the bytes do not fit the format.
    """
    structure = model.structure_bytes()
    if shape_inference:
        structure = inferred_structure(structure)[0]
    try:
        view, head = open_view(model, structure)
        return {
            "path": str(model.path),
            "size": model.size,
            "name": view.name,
            "ir_version": head.ir_version,
            "producer": head.producer,
            "producer_version": head.producer_version,
            "opset": head.opsets.get(""),
            "other_opsets": {d: v for d, v in head.opsets.items() if d},
            "n_functions": len(head.functions),
            **_graph(view, show),
            **_nodes(view, show, module),
        }
    except WireError as error:
        raise BadFile(model.path, f"damaged ONNX model: {error}") from error


def _graph(view: GraphView, show: Collection[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "inputs": _values(view.inputs),
        "outputs": _values(view.outputs),
        "n_initializers": len(view.initializers),
        "n_nodes": view.n_nodes,
    }
    if "layers" in show or "weights" in show:
        result["initializers"] = [_initializer(view, t, "weights" in show) for t in view.initializers]
    return result


def _nodes(view: GraphView, show: Collection[str], module: str) -> dict[str, Any]:
    """The main graph's nodes, with where they come from."""
    from layerwise._tool.surgery.inspect.modules import modules_json, origin_json

    found: dict[str, Any] = {}
    chosen = view.nodes_in(module) if module else []
    if "layers" in show and module:
        found["nodes"] = [_node(view, node, show) | origin_json(origin) for _, node, origin in chosen]
    elif "layers" in show:
        pairs = zip(view.nodes(), view.origins(), strict=True)
        found["nodes"] = [_node(view, node, show) | origin_json(origin) for node, origin in pairs]
    return found | (modules_json(view.origins(), module) if "modules" in show else {})


def _values(values: Iterable[Value]) -> list[dict[str, Any]]:
    return [{"name": v.name, "dtype": v.kind or None, "shape": v.shape} for v in values]


def _initializer(view: GraphView, tensor: TensorRecord, with_values: bool) -> dict[str, Any]:
    result = {"name": tensor.name, "dtype": dtype_name(tensor.dtype), "shape": tensor.dims}
    return result | (_array(view, tensor) if with_values else {})


def _array(view: GraphView, tensor: TensorRecord) -> dict[str, Any]:
    try:
        array = view.array(tensor)
    except LayerwiseError as error:
        return {"error": str(error)}
    if array.size > VALUE_LIMIT:
        return {}
    kind = array.dtype.kind
    plain = array if kind in "biufO" else array.astype("complex128" if kind == "c" else "float64")
    return {"values": [str(v) for v in plain.ravel()] if kind == "c" else plain.tolist()}


def _node(view: GraphView, node: Node, show: Collection[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": node.name,
        "op": node.op,
        "domain": node.domain,
        "inputs": [_tensor(view, name) for name in node.inputs],
        "outputs": [_tensor(view, name) for name in node.outputs],
    }
    if "attrs" in show:
        result["attributes"] = {name: _attribute(view, v, show) for name, v in view.attributes(node)}
    return result


def _tensor(view: GraphView, name: str) -> dict[str, Any]:
    value = view.value(name)
    result = {"name": name, "dtype": value.kind or None, "shape": value.shape}
    return result | ({"initializer": True} if name in view.initializer_names else {})


def _attribute(view: GraphView, value: Any, show: Collection[str]) -> Any:
    if isinstance(value, Elided):
        items = [_attribute(view, v, show) for v in value.values]
        return items if value.total == len(items) else {"first": items, "total": value.total}
    if isinstance(value, TensorRecord):
        return _initializer(view, value, "weights" in show)
    if isinstance(value, GraphView):
        nodes = {"nodes": [_node(value, node, show) for node in value.nodes()]} if "layers" in show else {}
        return {"name": value.name, **_graph(value, show), **nodes}
    return value


def action_inspect_model(context: "JobContext") -> dict[str, Any]:
    """Describe a model.

    params: path; show (any of "layers", "attrs", "weights"); json (a "description" in the result instead of lines);
    shape_inference; external_data_dir; ignore_external_data. Lines are log events of level "out", several lines in one
    event.
    """
    params = context.params
    show, infer = list(params.get("show") or ()), bool(params.get("shape_inference"))
    external, ignore = params.get("external_data_dir"), bool(params.get("ignore_external_data"))
    with ModelFile(params["path"], external, ignore) as model:
        if params.get("json"):
            return {"description": describe_model_json(model, show, infer)}
        for text in joined_lines(describe_model(model, show, infer)):
            context.log(text, level="out")
    return {}


def joined_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join lines by newlines into texts of about 3000 characters."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line) + 1
        if size >= _EVENT_CHARACTERS:
            yield "\n".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "\n".join(waiting)
