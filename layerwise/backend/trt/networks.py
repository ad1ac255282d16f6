"""Networks: their tensors and layers, and marking outputs."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.common import TensorMetadata
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER, LogMode
from layerwise.util import check_sequence_contains, is_shape_dynamic
from layerwise.util.matching import expand_wildcards

Described = tuple[list[str], TensorMetadata]
_LOOP_BEGINS, _LOOP_ENDS = ("TRIP_LIMIT", "ITERATOR", "RECURRENCE"), ("LOOP_OUTPUT",)
_LAYER_CLASSES = {
    "ACTIVATION": "Activation", "ASSERTION": "Assertion", "ATTENTION_INPUT": "AttentionInput",
    "ATTENTION_OUTPUT": "AttentionOutput", "CAST": "Cast", "CONCATENATION": "Concatenation", "CONDITION": "Condition",
    "CONDITIONAL_INPUT": "IfConditionalInput", "CONDITIONAL_OUTPUT": "IfConditionalOutput", "CONSTANT": "Constant",
    "CONVOLUTION": "Convolution", "CUMULATIVE": "Cumulative", "DECONVOLUTION": "Deconvolution",
    "DEQUANTIZE": "Dequantize", "DIST_COLLECTIVE": "DistCollective", "DYNAMIC_QUANTIZE": "DynamicQuantize",
    "EINSUM": "Einsum", "ELEMENTWISE": "ElementWise", "FILL": "Fill", "FULLY_CONNECTED": "FullyConnected",
    "GATHER": "Gather", "GRID_SAMPLE": "GridSample", "IDENTITY": "Identity", "ITERATOR": "Iterator",
    "KV_CACHE_UPDATE": "KVCacheUpdate", "LOOP_OUTPUT": "LoopOutput", "LRN": "LRN",
    "MATRIX_MULTIPLY": "MatrixMultiply", "MOE": "MoE", "NMS": "NMS", "NON_ZERO": "NonZero",
    "NORMALIZATION": "Normalization", "ONE_HOT": "OneHot", "PADDING": "Padding", "PARAMETRIC_RELU": "ParametricReLU",
    "PLUGIN": "Plugin", "PLUGIN_V2": "PluginV2", "PLUGIN_V3": "PluginV3", "POOLING": "Pooling",
    "QUANTIZE": "Quantize", "RAGGED_SOFTMAX": "RaggedSoftMax", "RECURRENCE": "Recurrence", "REDUCE": "Reduce",
    "RESIZE": "Resize", "REVERSE_SEQUENCE": "ReverseSequence", "RNN": "RNN", "RNN_V2": "RNNv2",
    "ROTARY_EMBEDDING": "RotaryEmbedding", "SCALE": "Scale", "SCATTER": "Scatter", "SELECT": "Select",
    "SHAPE": "Shape", "SHUFFLE": "Shuffle", "SLICE": "Slice", "SOFTMAX": "SoftMax", "SQUEEZE": "Squeeze",
    "TOPK": "TopK", "TRIP_LIMIT": "TripLimit", "UNARY": "Unary", "UNSQUEEZE": "Unsqueeze",
}  # fmt: skip


def get_layer_class_mapping() -> dict[Any, Any]:
    """trt.LayerType -> the class of its layers, as far as this TensorRT has both."""
    trt = tensorrt()
    found = {kind: (getattr(trt.LayerType, kind, None), getattr(trt, f"I{name}Layer", None))
             for kind, name in _LAYER_CLASSES.items()}  # fmt: skip
    return {kind: cls for kind, cls in found.values() if kind is not None and cls is not None}


def _described(tensors: Iterable[Any]) -> Described:
    names, metadata = [], TensorMetadata()
    for tensor in tensors:
        if tensor is not None:
            names.append(tensor.name)
            metadata.add(tensor.name, DataType.from_dtype(tensor.dtype, "tensorrt"), tuple(tensor.shape))
    return names, metadata


def _inputs(network: Any) -> list[Any]:
    return [network.get_input(index) for index in range(network.num_inputs)]


def _outputs(network: Any) -> list[Any]:
    return [network.get_output(index) for index in range(network.num_outputs)]


def get_network_input_names_meta(network: Any) -> Described:
    """Names of the inputs, and their types and shapes."""
    return _described(_inputs(network))


def get_network_output_names_meta(network: Any) -> Described:
    """Names of the outputs, and their types and shapes."""
    return _described(_outputs(network))


def get_layer_input_names_meta(layer: Any) -> Described:
    """Names of what a layer reads, with types and shapes."""
    return _described(_inputs(layer))


def get_layer_output_names_meta(layer: Any) -> Described:
    """Names of what a layer makes, with types and shapes."""
    return _described(_outputs(layer))


def get_layer_attribute_names(layer: Any) -> list[str]:
    """Attributes that layers of its class have besides those of all, without those that are not valid for it."""
    trt = tensorrt()
    hidden: tuple[str, ...] = ()
    spatial = [getattr(trt, f"I{name}Layer", None) for name in ("Pooling", "Convolution", "Deconvolution")]
    if type(layer) in spatial and len(layer.get_input(0).shape) > 4:
        hidden = ("padding", "stride", "window_size")
    elif type(layer) is trt.IResizeLayer and layer.num_inputs > 1:
        hidden = ("scales",)
    elif type(layer) is trt.ISliceLayer and layer.num_inputs > 1:
        hidden = ("shape", "start", "stride")
    return [
        name for name in dir(layer)
        if not (name.startswith("__") and name.endswith("__")) and not hasattr(trt.ILayer, name) and name not in hidden
    ]  # fmt: skip


def get_all_tensors(network: Any) -> dict[str, Any]:
    """All tensors that layers read or make, by name."""
    tensors = (tensor for layer in network for tensor in (*_inputs(layer), *_outputs(layer)))
    return {tensor.name: tensor for tensor in tensors if tensor is not None}


def get_all_io_tensors(network: Any) -> dict[str, Any]:
    """Inputs and outputs, by name."""
    return {tensor.name: tensor for tensor in (*_inputs(network), *_outputs(network)) if tensor is not None}


def _chosen(network: Any, outputs: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """All tensors, and the names that were asked for. PolygraphyException for one that there is not."""
    tensors = get_all_tensors(network) | get_all_io_tensors(network)
    names = expand_wildcards(outputs, list(tensors))
    check_sequence_contains(tensors, names, "the network", "outputs", check_extra=False)
    return tensors, names


def mark_outputs(network: Any, outputs: Iterable[str]) -> None:
    """Make tensors, by names and patterns, the outputs in place of others."""
    tensors, names = _chosen(network, outputs)
    if not names:
        G_LOGGER.critical("No outputs were selected. Please check your wildcard patterns.")
    for tensor in tensors.values():
        if tensor.is_network_output:
            network.unmark_output(tensor)
    for name in dict.fromkeys(names):
        network.mark_output(tensors[name])


def unmark_outputs(network: Any, outputs: Iterable[str]) -> None:
    """Make tensors, by names and patterns, outputs no more."""
    tensors, names = _chosen(network, outputs)
    for name in names:
        if tensors[name].is_network_output:
            network.unmark_output(tensors[name])


def mark_layerwise(network: Any) -> None:
    """Make what all layers make outputs, without shapes and constants, and without what is inside of loops."""
    names, inside = [], False
    for layer in network:
        kind = layer.type.name
        if kind in _LOOP_BEGINS:
            G_LOGGER.warning("Loop detected: what layers inside of it make cannot be marked.", LogMode.ONCE)
            inside = True
        elif kind in _LOOP_ENDS:
            inside = False
        if not inside and kind not in ("SHAPE", "CONSTANT"):
            names += get_layer_output_names_meta(layer)[0]
    mark_outputs(network, names)


def mark_by_layer_type(network: Any, layer_types: Iterable[Any]) -> None:
    """Make what layers of some types make the outputs. PolygraphyException for a type that TensorRT does not have."""
    types = {name.lower(): value for name, value in tensorrt().LayerType.__members__.items()}
    wanted = []
    for each in layer_types:
        name = str(getattr(each, "name", each))
        if name.lower() not in types:
            near = get_close_matches(name.lower(), types, n=5, cutoff=0.6)
            hint = f"Did you mean one of: {near}?" if near else f"Available layer types: {sorted(types)}"
            G_LOGGER.critical(f"No TensorRT layer type '{shown(name, 80)}' was found. {hint}")
        wanted.append(types[name.lower()])
    names = [name for layer in network if layer.type in wanted for name in get_layer_output_names_meta(layer)[0]]
    if names:
        mark_outputs(network, names)


def get_input_metadata_from_network(network: Any, profile: Any, force_opt_shapes: bool | None = None) -> TensorMetadata:
    """Names, types and shapes of the inputs, with the bounds of a profile.

    force_opt_shapes: the profile's likeliest shapes instead, without bounds.
    """
    metadata = TensorMetadata()
    for tensor in _inputs(network):
        shape, low, high = tuple(tensor.shape), None, None
        if tensor.is_shape_tensor or is_shape_dynamic(shape):
            ranges = profile.get_shape_input if tensor.is_shape_tensor else profile.get_shape
            low, likely, high = ranges(tensor.name)
            shape = tuple(likely) if force_opt_shapes else shape
        bounds = (None, None) if force_opt_shapes else (low, high)
        metadata.add(tensor.name, tensor.dtype, shape, *bounds)
    return metadata
