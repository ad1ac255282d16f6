"""Features that only one version of TensorRT has, by name, in one table.

Source: the recorded API of 10.16.1.11 and 11.4.0.106, and NVIDIA's migration pages from 10.x to 11.x.
"""

from dataclasses import dataclass
from typing import Any

from layerwise._tool.backends.errors import UsageError


@dataclass(frozen=True)
class Capability:
    """A feature of only one version. place: `Class.member` or a name in the module. instead: its replacement.

    called: its label in messages, if not the name.
    """

    place: str
    only: int
    instead: str
    called: str = ""


CAPABILITIES: dict[str, Capability] = {
    "fp16_flag": Capability("BuilderFlag.FP16", 10, "the graph is converted with casts before it is parsed"),
    "bf16_flag": Capability("BuilderFlag.BF16", 10, "the graph is converted with casts before it is parsed"),
    "int8_flag": Capability("BuilderFlag.INT8", 10, "the graph gets QuantizeLinear and DequantizeLinear nodes"),
    "fp8_flag": Capability("BuilderFlag.FP8", 10, "the model must hold FP8 QuantizeLinear and DequantizeLinear nodes"),
    "obey_precisions": Capability(
        "BuilderFlag.OBEY_PRECISION_CONSTRAINTS", 10, "networks are always strongly typed: casts are obeyed"
    ),
    "prefer_precisions": Capability(
        "BuilderFlag.PREFER_PRECISION_CONSTRAINTS", 10, "networks are always strongly typed: casts are obeyed"
    ),
    "layer_precision": Capability("ILayer.precision", 10, "the graph gets casts around the nodes"),
    "settable_dtype": Capability(
        "IInt8Calibrator", 10, "inputs and outputs of ONNX models get casts", "setter of ITensor.dtype"
    ),
    "calibrators": Capability("IInt8Calibrator", 10, "ranges are measured by onnxruntime and put in as scales"),
    "quantization_flags": Capability("QuantizationFlag", 10, "they went with the calibrators"),
    "algorithm_selector": Capability("IAlgorithmSelector", 10, "tactics are recorded in the editable timing cache"),
    "external_tactics": Capability("TacticSource.CUDNN", 10, "tactics of outside libraries are gone"),
    "typed_by_flag": Capability("NetworkDefinitionCreationFlag.EXPLICIT_BATCH", 10, "it is always so"),
    "dla_workspace": Capability("DLAWorkspaceAllocationStrategy", 11, "each context has its own"),
    "build_route": Capability("IBuilderConfig.build_route", 11, "there is one route"),
}


def has_name(trt: Any, place: str) -> bool:
    """Return whether the module has `place`: a name, or a class and its member."""
    found = trt
    for part in place.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def able(trt: Any, name: str) -> bool:
    """Return whether the installed TensorRT has the capability of that name. KeyError if the table has no such row."""
    return has_name(trt, CAPABILITIES[name].place)


def lacks(trt: Any, name: str) -> str:
    """Return a sentence: this version lacks it, and what replaces it."""
    row = CAPABILITIES[name]
    return f"TensorRT {trt.__version__} has no {row.called or row.place} (TensorRT {row.only} only): {row.instead}"


def member(enum: Any, name: str, option: str) -> Any:
    """Return the enumerator called `name`, ignoring case. UsageError lists the valid ones."""
    members = enum.__members__
    found = {key.lower(): value for key, value in members.items()}.get(name.strip().lower())
    if found is None:
        raise UsageError(f"{option} {name!r}: this TensorRT has {', '.join(members) or 'none'}")
    return found
