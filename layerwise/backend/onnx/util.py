"""Facts about ONNX models, and marking outputs."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise.common import TensorMetadata
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER, LogMode
from layerwise.mod.importer import lazy_import
from layerwise.util import unique_list
from layerwise.util.matching import expand_wildcards

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

gs = lazy_import("onnx_graphsurgeon>=0.3.27")


def get_num_nodes(model: "ModelProto") -> int:
    """The number of nodes, those of bodies included."""
    return _nodes_in(model.graph)


def _nodes_in(graph: "GraphProto") -> int:
    inner = (body for node in graph.node for a in node.attribute for body in (a.g, *a.graphs) if body.node)
    return len(graph.node) + sum(map(_nodes_in, inner))


def output_names(model: "ModelProto") -> list[str]:
    """The names of the outputs."""
    return [value.name for value in model.graph.output]


def all_tensor_names(model: "ModelProto", include_inputs: bool | None = None) -> list[str]:
    """What nodes make, other than Constant; with `include_inputs` then the inputs."""
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output if name]
    return unique_list(names + ([value.name for value in model.graph.input] if include_inputs else []))


def _need(names: Sequence[str], model: "ModelProto") -> None:
    known = {*all_tensor_names(model, include_inputs=True), *output_names(model)}
    known |= {name for node in model.graph.node for name in node.output}
    if missing := [name for name in names if name not in known]:
        told = ", ".join(f"'{shown(name, 120)}'" for name in missing[:20])
        raise UsageError(f"the model has no tensor {told} to mark as an output: the following outputs were not found")


def mark_outputs(model: "ModelProto", outputs: Sequence[str]) -> "ModelProto":
    """Make tensors, by names and patterns, the outputs in place of others. UsageError for one that there is not."""
    from layerwise._tool.debugtools.compare.sides.save_model import set_outputs

    names = expand_wildcards(outputs, unique_list([*all_tensor_names(model), *output_names(model)]))
    if not names:
        G_LOGGER.critical("No outputs were selected. Please check your wildcard patterns.")
    _need(names, model)
    set_outputs(model, names)
    return model


def mark_layerwise(model: "ModelProto") -> "ModelProto":
    """Make all tensors outputs."""
    return mark_outputs(model, all_tensor_names(model))


def mark_by_op_type(model: "ModelProto", op_types: Sequence[str]) -> "ModelProto":
    """Make what nodes of some types make the outputs. A type that there is not is an error in the log."""
    there = unique_list(node.op_type for node in model.graph.node)
    for wanted in op_types:
        if wanted.lower() not in map(str.lower, there):
            near = get_close_matches(wanted, there, n=5, cutoff=0.6)
            hint = f"Did you mean one of: {near}?" if near else f"Available op types: {sorted(there)}"
            G_LOGGER.error(
                f"No ONNX nodes of op type '{shown(wanted, 80)}' were found in the model. {shown(hint, 500)}"
            )
    kinds = {wanted.lower() for wanted in op_types}
    names = [name for node in model.graph.node if node.op_type.lower() in kinds for name in node.output if name]
    return mark_outputs(model, names) if names else model


def unmark_outputs(model: "ModelProto", outputs: Sequence[str]) -> "ModelProto":
    """Make tensors, by names and patterns, outputs no more. UsageError for one that there is not."""
    left_out = expand_wildcards(outputs, unique_list([*all_tensor_names(model), *output_names(model)]))
    _need(left_out, model)
    kept = [value for value in model.graph.output if value.name not in left_out]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return model


def get_shape(tensor: Any) -> list[Any]:
    """The shape of a TensorProto or ValueInfoProto: numbers, symbols, -1 for what is not known."""
    if hasattr(tensor, "dims"):
        return list(tensor.dims)
    dims = tensor.type.tensor_type.shape.dim
    return [
        dim.dim_param if dim.HasField("dim_param") else dim.dim_value if dim.HasField("dim_value") else -1
        for dim in dims
    ]


def get_dtype(tensor: Any) -> Any:
    """The DataType of a TensorProto or ValueInfoProto."""
    number = tensor.data_type if hasattr(tensor, "data_type") else tensor.type.tensor_type.elem_type
    return DataType.from_dtype(number, source_module="onnx")


def get_values(tensor: Any) -> Any:
    """The values of a TensorProto; a text, and an error in the log, if they cannot be read."""
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # external data that is not there, damaged weights
        G_LOGGER.error(f"Failed to load weights.\nNote: Error was: {error}", LogMode.ONCE)
        return "<error: failed to load weights>"


def get_tensor_metadata(tensors: Iterable[Any]) -> TensorMetadata:
    """Names, types and shapes of TensorProtos or ValueInfoProtos."""
    metadata = TensorMetadata()
    for tensor in tensors:
        metadata.add(tensor.name, get_dtype(tensor), get_shape(tensor))
    return metadata


def get_input_metadata(graph: "GraphProto") -> TensorMetadata:
    """Names, types and shapes of a graph's inputs; weights are none."""
    weights = {tensor.name for tensor in graph.initializer}
    return get_tensor_metadata(value for value in graph.input if value.name not in weights)


def get_output_metadata(graph: "GraphProto") -> TensorMetadata:
    """Names, types and shapes of a graph's outputs."""
    return get_tensor_metadata(graph.output)


def str_from_onnx(
    model: "ModelProto",
    show_layers: bool | None = None,
    show_attrs: bool | None = None,
    show_weights: bool | None = None,
) -> str:
    """A description of a model; on request with nodes, their attributes, and values of weights."""
    from layerwise._tool.backends.filesystem.files import atomic_write
    from layerwise._tool.backends.filesystem.temporary import temporary_folder
    from layerwise._tool.backends.model.file import ModelFile
    from layerwise._tool.surgery.inspect.text import describe_model

    wanted = {"layers": show_layers, "attrs": show_attrs, "weights": show_weights}
    with temporary_folder() as folder:
        path = Path(folder) / "model.onnx"
        atomic_write(path, model.SerializeToString())
        with ModelFile(path) as file:
            lines = list(describe_model(file, [name for name, on in wanted.items() if on]))
    return dedent("\n".join(lines[1:])).rstrip()


def meta_from_gs_tensors(tensors: Iterable[Any]) -> TensorMetadata:
    """Names, types and shapes of tensors of onnx-graphsurgeon."""
    metadata = TensorMetadata()
    for tensor in tensors:
        metadata.add(tensor.name, tensor.dtype, tensor.shape)
    return metadata


def set_shapes_from_layerwise_meta(graph: Any, layerwise_meta: Mapping[str, Any]) -> None:
    """Give the variables of a graph of onnx-graphsurgeon types and shapes that are known of them."""
    for tensor in graph.tensors().values():
        if isinstance(tensor, gs.Variable) and tensor.name in layerwise_meta:
            known = layerwise_meta[tensor.name]
            tensor.shape = known.shape
            tensor.dtype = DataType.to_dtype(DataType.from_dtype(known.dtype), "onnx")


def lower_constant_nodes(graph: Any) -> Any:
    """Make constants of the Constant nodes of a graph of onnx-graphsurgeon; returns it."""
    nodes = [node for node in graph.nodes if node.op == "Constant" and "value" in node.attrs]
    for node in nodes:
        node.outputs[0].to_constant(node.attrs["value"].values)
    gone = {id(node) for node in nodes}
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    return graph


def get_unbounded_dds_tensors(graph: Any) -> list[Any]:
    """Tensors of a graph of onnx-graphsurgeon that decide on the size of others without a limit."""
    from layerwise._tool.surgery.types.unbounded import unbounded_tensors

    graph.toposort()
    tensors = graph.tensors()
    return [tensors[name] for name in unbounded_tensors(gs.export_onnx(graph, do_type_check=False))]
