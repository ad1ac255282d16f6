"""Sets types and formats of tensors and layers on the network."""

import fnmatch
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.network import tensors_of
from layerwise._tool.backends.trt.capabilities import able, lacks, member
from layerwise._tool.backends.trt.inference.engine import NUMPY_NAMES
from layerwise._tool.backends.trt.inspect.layers import metadata_nodes
from layerwise._tool.backends.trt.options import TrtOptions

Value = TypeVar("Value")
_DTYPES = {
    "float32": "FLOAT", "fp32": "FLOAT", "float16": "HALF", "fp16": "HALF", "half": "HALF", "bfloat16": "BF16",
    "bf16": "BF16", "float8": "FP8", "fp8": "FP8", "int8": "INT8", "uint8": "UINT8", "int32": "INT32",
    "int64": "INT64", "int4": "INT4", "bool": "BOOL",
}  # fmt: skip


def data_type(trt: Any, name: str, option: str) -> Any:
    """Return the DataType of a name: TensorRT's, NumPy's or a short one. UsageError for others."""
    return member(trt.DataType, _DTYPES.get(name.strip().lower().removeprefix("datatype."), name), option)


def fed_type(info: TensorInfo, given: dict[str, str]) -> TensorInfo:
    """Return an input as it is fed, given types (name, "" for all others -> DataType)."""
    name = given.get(info.name, given.get(""))
    kind = None if name is None else _DTYPES.get(name.strip().lower().removeprefix("datatype."), name.upper())
    return replace(info, dtype=NUMPY_NAMES[kind]) if kind in NUMPY_NAMES else info


def set_types(trt: Any, network: Any, options: TrtOptions, tell: Callable[[str], None]) -> None:
    """Set the options' types of layers and tensors. UsageError for an unknown name.

    Precisions of layers are set only on weakly typed networks of 10; elsewhere the graph has them already.
    """
    wanted = options.network
    if wanted.layer_precisions and able(trt, "layer_precision") and not _strong(trt, options):
        _layer_precisions(trt, network, wanted.layer_precisions, part=options.part)
    tensors = {**_inputs(network), **tensors_of(network)}
    for name, dtype in _spread(wanted.tensor_dtypes, network).items():
        _set_dtype(trt, _named(tensors, name, "--tensor-dtypes"), data_type(trt, dtype, "--tensor-dtypes"))
    for name, formats in _spread(wanted.tensor_formats, network).items():
        found = [member(trt.TensorFormat, entry, "--tensor-formats") for entry in formats]
        _named(tensors, name, "--tensor-formats").allowed_formats = sum(1 << int(entry) for entry in found)
    if wanted.decomposable_attentions:
        tell("--decomposable-attentions has no effect: networks from ONNX models have no attention layers.")
    for name in wanted.mark_debug:
        network.mark_debug(_named(tensors, name, "--mark-debug"))
    if wanted.mark_unfused:
        network.mark_unfused_tensors_as_debug_tensors()


def _spread(given: dict[str, Value], network: Any) -> dict[str, Value]:
    """Apply the value for "" to every input and output that is not named."""
    if "" not in given:
        return given
    outputs = [network.get_output(i).name for i in range(network.num_outputs)]
    return dict.fromkeys([*_inputs(network), *outputs], given[""]) | {n: v for n, v in given.items() if n}


def _strong(trt: Any, options: TrtOptions) -> bool:
    return options.network.strongly_typed or options.config.graph_precision


def _layer_precisions(trt: Any, network: Any, precisions: dict[str, str], *, part: bool) -> None:
    """part: ignore unknown names."""
    layers = layers_of(network)
    for name, precision in precisions.items():
        kind = data_type(trt, precision, "--layer-precisions")
        meant = layers.get(name) or [layer for other in fnmatch.filter(layers, name) for layer in layers[other]]
        if not meant and not part:
            _named(layers, name, "--layer-precisions")
        for layer in meant:
            layer.precision = kind
            if kind == trt.DataType.FLOAT:
                _give_full(trt, layer)


def _give_full(trt: Any, layer: Any) -> None:
    """Outputs of a layer kept in FP32 must not be rounded either."""
    for at in range(layer.num_outputs):
        tensor = layer.get_output(at)
        if tensor is not None and tensor.dtype == trt.DataType.FLOAT and tensor.is_execution_tensor:
            layer.set_output_type(at, trt.DataType.FLOAT)


def layers_of(network: Any) -> dict[str, list[Any]]:
    """Return layers by name, by the name of the ONNX node they came from (a node may become several), or else by a
    tensor that they make.
    """
    named: dict[str, list[Any]] = {}
    makers: dict[str, list[Any]] = {}
    for layer in (network.get_layer(at) for at in range(network.num_layers)):
        for name in dict.fromkeys([layer.name, *metadata_nodes(layer.metadata or "")]):
            named.setdefault(name, []).append(layer)
        for slot in range(layer.num_outputs):
            if (tensor := layer.get_output(slot)) is not None:
                makers[tensor.name] = [layer]
    return makers | named


def _set_dtype(trt: Any, tensor: Any, dtype: Any) -> None:
    if tensor.dtype == dtype:
        return
    if not able(trt, "settable_dtype"):
        raise UsageError(f"--tensor-dtypes {shown(tensor.name, 80)}: {lacks(trt, 'settable_dtype')}")
    tensor.dtype = dtype


def _inputs(network: Any) -> dict[str, Any]:
    return {network.get_input(i).name: network.get_input(i) for i in range(network.num_inputs)}


def _named(there: dict[str, Any], name: str, option: str) -> Any:
    if name not in there:
        told = ", ".join(shown(known, 60) for known in list(there)[:10])
        raise UsageError(f"{option}: the network has no '{shown(name, 120)}'; it has {told}")
    return there[name]
