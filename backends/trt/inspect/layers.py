"""Parses the layer information of TensorRT's engine inspector, from the JSON of 10 and of 11.

10 names the inputs and outputs ("Bindings") and combines type and format in "Format/Datatype"; 11 describes them
("I/O Tensors") and separates "Format" and "Datatype". Engines built without detailed profiling verbosity only have
layer names. A layer's ONNX nodes are in "Metadata" ("[ONNX Layer: conv]", several with U+001F between those of one
fusion and U+001E between fusions), and, where that is missing, in the name ("conv + relu").
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.wording import in_words

_TENSORS = ("Inputs", "Outputs")
_OWN = ("Name", "LayerType", *_TENSORS, "Metadata")
_ONNX = re.compile(r"\[ONNX Layer: ([^\x1e\x1f]*?)\](?=[\x1e\x1f\[]|$)")
_PROFILE = re.compile(r"\s*\[profile (\d{1,6})\]$")
_JOINED = re.compile(r" \+ | \|\| ")
_TYPES = {
    "BFLOAT16": "bfloat16", "BF16": "bfloat16", "FLOAT8E4M3": "float8_e4m3fn", "FLOAT8E5M2": "float8_e5m2",
    "FP8": "float8_e4m3fn", "E4M3": "float8_e4m3fn", "E5M2": "float8_e5m2", "FLOAT4": "float4_e2m1fn",
    "FP4": "float4_e2m1fn", "E2M1": "float4_e2m1fn", "E8M0": "float8_e8m0fnu", "FLOAT": "float32", "HALF": "float16",
    "FP32": "float32", "FP16": "float16", "UINT8": "uint8", "INT64": "int64", "INT32": "int32", "INT8": "int8",
    "INT4": "int4", "BOOL": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class LayerTensor:
    """A tensor of a layer; -1 in `shape` is a dynamic size. dtype: empty if unknown."""

    name: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    format: str = ""


@dataclass(frozen=True)
class EngineLayer:
    """A layer of an engine or a network. kind: "Unknown" if unknown. nodes: the ONNX nodes that it computes.

    attributes: everything else that is known, as in the JSON. profile: the optimization profile it belongs to.
    """

    name: str
    kind: str = "Unknown"
    inputs: list[LayerTensor] = field(default_factory=list)
    outputs: list[LayerTensor] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    profile: int = 0


def layers_of(text: str) -> list[EngineLayer]:
    """Return the layers in the inspector's JSON of an engine. LayerwiseError if it is not that JSON."""
    try:
        return [_layer(row) for row in json.loads(text)["Layers"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LayerwiseError(f"TensorRT's inspector gives no JSON of layers: {in_words(error, 200)}") from None


def _layer(row: str | Mapping[str, Any]) -> EngineLayer:
    if isinstance(row, str):
        return EngineLayer(*_profiled(row)[:1], profile=_profiled(row)[1])
    name, profile = _profiled(str(row.get("Name", "Unknown")))
    inputs, outputs = ([_tensor(entry) for entry in row.get(key) or ()] for key in _TENSORS)
    attributes = {str(key): value for key, value in row.items() if key not in _OWN}
    nodes = metadata_nodes(str(row.get("Metadata") or ""))
    return EngineLayer(name, str(row.get("LayerType", "Unknown")), inputs, outputs, nodes, attributes, profile)


def _profiled(name: str) -> tuple[str, int]:
    """Return a layer's name without its profile, and the profile."""
    match = _PROFILE.search(name)
    return (name[: match.start()], int(match[1])) if match else (name, 0)


def _tensor(entry: Mapping[str, Any]) -> LayerTensor:
    joined = entry.get("Format/Datatype")
    told = joined or " ".join(str(entry[key]) for key in ("Datatype", "Format") if entry.get(key))
    kind = str(told if joined else entry.get("Datatype") or "")
    dims = entry.get("Dimensions")
    shape = None if dims is None else tuple(int(size) for size in dims)
    return LayerTensor(str(entry.get("Name", "")), type_of(kind), shape, "" if "N/A" in str(told) else str(told))


def type_of(text: str) -> str:
    """Return our name of the type in an inspector's format string, "" if it names none."""
    upper = text.upper()
    return next((name for word, name in _TYPES.items() if word in upper), "")


def metadata_nodes(text: str) -> list[str]:
    """Return the names of ONNX nodes in a layer's metadata, each once."""
    return list(dict.fromkeys(_ONNX.findall(text)))


def named_nodes(name: str, known: Collection[str]) -> list[str]:
    """Return the ONNX nodes among `known` that a layer's name consists of."""
    return [part for part in dict.fromkeys([name, *_JOINED.split(name)]) if part in known]
