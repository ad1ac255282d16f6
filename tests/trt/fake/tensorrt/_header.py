"""What a plan says of an engine beside the model that runs."""

from typing import Any

from . import _faults
from ._arguments import CLASSES
from ._layers import emitted
from ._recording import api, version
from ._rewrite import strongly_typed


def header(network: Any, config: Any, profiles: Any, choices: Any, precisions: dict[str, str]) -> dict[str, Any]:
    """Everything of an engine but its model, as JSON values."""
    flags = [name for name in CLASSES["BuilderFlag"].__members__ if config._has(name)]
    verbosity = config._values.get("profiling_verbosity")
    return {
        "version": api()["version"],
        "name": network.name,
        "io": [_tensor(t, "INPUT") for t in network._inputs] + [_tensor(t, "OUTPUT") for t in network._outputs],
        "layers": [_layer(layer, c, precisions) for layer, c in zip(network._layers, choices, strict=True)],
        "profiles": profiles,
        "flags": flags,
        "verbosity": verbosity.name if verbosity is not None else "LAYER_NAMES_ONLY",
        "capability": _named(config, "engine_capability", "STANDARD"),
        "hardware": _named(config, "hardware_compatibility_level", "NONE"),
        "aux_streams": max(0, config._values.get("max_aux_streams", -1)),
        "tactic_sources": config.get_tactic_sources(),
        "config": _config(config),
        "parser_flags": getattr(network, "_parsed_with", []),
        "workspace": 1 << 20,
        "strongly_typed": strongly_typed(network),
        "debug": [[tensor._name, tensor._id] for tensor in network._debug.values()],
        "unfused": network._unfused,
        "internal": _internal(network),
        "refittable": sorted(network._refittable),
        "missing": [],
        "major": version(),
    }


def _config(config: Any) -> dict[str, Any]:
    """What was set on the builder config that an engine does not tell."""
    sources = config.get_tactic_sources()
    return {
        "pools": dict(config._pools),
        "level": config._values["builder_optimization_level"],
        "sources": [name for name, source in CLASSES["TacticSource"].__members__.items() if sources >> int(source) & 1],
        "features": sorted(name for name, wanted in config._preview.items() if wanted),
        "tiling": _named(config, "tiling_optimization_level", "NONE"),
        "platform": _named(config, "runtime_platform", "SAME_AS_BUILD"),
        "device": _named(config, "default_device_type", "GPU"),
        "dla_core": config._values["DLA_core"],
        "quantization": config._values.get("quantization_flags", 0),
        "legacy_calibration": config._values.get("legacy_calibration"),
    }


def _internal(network: Any) -> dict[str, str]:
    """Names of layers and of tensors that are no outputs -> those that the engine shows instead."""
    globs, ends = _faults.faults().get("internal"), {tensor._id for tensor in network._outputs}
    hidden = [layer for layer in network._layers if _faults.matches(layer.name, globs)]
    tensors = [tensor._id for layer in hidden for tensor in layer.outputs if tensor._id not in ends]
    layers = {f"layer {layer.name}": f"__myl_{layer.kind.title()}_myl0_{at}" for at, layer in enumerate(hidden)}
    return layers | {name: f"__mye{at}" for at, name in enumerate(tensors)}


def _named(config: Any, name: str, otherwise: str) -> str:
    value = config._values.get(name)
    return value.name if value is not None else otherwise


def _tensor(tensor: Any, mode: str) -> dict[str, Any]:
    kind, shape = tensor._typed()
    return {"name": tensor._name, "id": tensor._id, "mode": mode, "dtype": kind.name, "shape": list(shape),
            "shape_io": tensor.is_shape_tensor, "formats": tensor._values.get("allowed_formats", 1)}  # fmt: skip


def _layer(layer: Any, choice: Any, precisions: dict[str, str]) -> dict[str, Any]:
    constants = {c.name for c in layer.network._initializers.values()} if layer.node else set()
    weights = [n for n in layer.node.input if n in constants] if layer.node else [c.name for c in emitted(layer)[1]]
    return {
        "name": layer.name, "kind": layer.kind, "key": choice.key, "tactic": choice.tactic, "at": choice.candidate,
        "ms": choice.milliseconds, "precision": precisions[layer.name], "metadata": layer.values.get("metadata", ""),
        "inputs": [[t._id, t._typed()[0].name, list(t._typed()[1])] for t in layer.inputs if t is not None],
        "outputs": [[t._id, t._typed()[0].name, list(t._typed()[1])] for t in layer.outputs],
        "weights": weights,
    }  # fmt: skip
