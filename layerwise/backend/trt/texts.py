"""Networks, configs and engines as text."""

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import numpy as np

from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.backend.trt.logger import MESSAGES, get_trt_logger
from layerwise.backend.trt.networks import get_layer_input_names_meta, get_layer_output_names_meta
from layerwise.comparator.struct import RunResults
from layerwise.json import load_json
from layerwise.logger import G_LOGGER
from layerwise.util import str_from_layer as layer_text


def str_from_layer(layer: Any, index: int) -> str:
    """A layer with the types and shapes of what it reads and makes."""
    read, made = get_layer_input_names_meta(layer), get_layer_output_names_meta(layer)
    return layer_text("Layer", index, layer.name, layer.type, *read, *made)


def str_from_network(
    network: Any, show_layers: bool | None = None, show_attrs: bool | None = None, show_weights: bool | None = None
) -> str:
    """A description of a network; on request with layers, their attributes, and values of weights."""
    from layerwise._tool.backends.trt.inspect.network import network_view
    from layerwise._tool.debugtools.engines.inspect.text import network_lines

    wanted = {"layers": show_layers, "attrs": show_attrs, "weights": show_weights}
    return _body(network_lines(network_view(tensorrt(), network), [name for name, on in wanted.items() if on]))


def str_from_engine(
    engine: Any,
    context: Any,
    show_layers: bool | None = None,
    show_attrs: bool | None = None,
    combine_tensor_info: str | None = None,
) -> str:
    """A description of an engine; on request with layers and their attributes.

    combine_tensor_info: a file of results, whose smallest, largest and mean values are put beside the tensors.
    """
    from layerwise._tool.backends.trt.inference.engine import Engine
    from layerwise._tool.backends.trt.inspect.engine import engine_view
    from layerwise._tool.debugtools.engines.inspect.text import engine_lines

    wanted = {"layers": show_layers, "attrs": show_attrs}
    known = TensorInfo(combine_tensor_info) if combine_tensor_info else None
    notes: Mapping[str, str] = {} if known is None else {n: known.get_tensor_statistics(n)[2:] for n in known.tensors}
    loaded = Engine(engine, [], get_trt_logger(), MESSAGES, None)
    return _body(engine_lines(engine_view(tensorrt(), loaded), [name for name, on in wanted.items() if on], notes))


def _body(lines: Any) -> str:
    _, *rest = lines
    return dedent("\n".join(rest)).rstrip()


def str_from_tensor(tensor: Any, is_shape_tensor: bool) -> str:
    """An input in a line."""
    kind = "shape-tensor" if is_shape_tensor else "tensor"
    return f"Input {kind}: {shown(tensor.name, 120)} (dtype={tensor.dtype}, shape={tensor.shape})"


def str_from_config(config: Any, network: Any) -> str:
    """What a builder config is set to, a line each, as far as this TensorRT has it."""
    trt = tensorrt()
    uses_dla = config.DLA_core >= 0 or config.default_device_type == trt.DeviceType.DLA
    flags = _on(trt, "BuilderFlag", config.get_flag)
    flags += _on(trt, "NetworkDefinitionCreationFlag", getattr(network, "get_flag", lambda flag: False))
    pools = [
        f"{name}: {config.get_memory_pool_limit(pool) / 2**20:.2f} MiB"
        for name, pool in trt.MemoryPoolType.__members__.items()
        if uses_dla or not name.startswith("DLA")
    ]
    sources = _on(trt, "TacticSource", lambda source: (1 << int(source)) & config.get_tactic_sources())
    features = _on(trt, "PreviewFeature", config.get_preview_feature)
    quantization = _on(trt, "QuantizationFlag", getattr(config, "get_quantization_flag", bool))
    profiles, calibrator = config.num_optimization_profiles, getattr(config, "int8_calibrator", None)
    rows = [
        ("Flags", _listed(flags)),
        ("Engine Capability", str(getattr(config, "engine_capability", ""))),
        ("Memory Pools", _listed(pools)),
        ("Tactic Sources", _listed(sources)),
        ("DLA", f"Default Device Type: {config.default_device_type}, Core: {config.DLA_core}" if uses_dla else ""),
        ("Profiling Verbosity", str(getattr(config, "profiling_verbosity", ""))),
        ("Optimization Profiles", f"{profiles} profile(s)" if profiles > 1 else ""),
        ("Preview Features", _listed(features) if features else ""),
        ("Calibrator", str(calibrator) if calibrator else ""),
        ("Quantization Flags", _listed(quantization) if quantization else ""),
    ]
    return "\n".join(f"{title:22} | {text}" for title, text in rows if text)


def _on(trt: Any, enum: str, is_on: Any) -> list[str]:
    return [name for name, value in getattr(getattr(trt, enum, None), "__members__", {}).items() if is_on(value)]


def _listed(items: list[str]) -> str:
    return f"[{', '.join(items)}]"


class TensorInfo:
    """Smallest, largest and mean values of the tensors of a file of results (its first runner, first iteration)."""

    def __init__(self, json_path: str | None = None) -> None:
        self.tensors: dict[str, dict[str, float]] = {}
        if json_path:
            self.load_json(json_path)

    def load_json(self, json_path: str) -> None:
        """Read a file; a warning if it holds anything else."""
        found = load_json(json_path)
        if not isinstance(found, RunResults):
            G_LOGGER.warning(f"Unsupported tensor info format: {json_path}")
            return
        for name, iterations in found.items():
            if not iterations:
                G_LOGGER.warning(f"No iterations found for runner: {shown(name, 120)}")
                continue
            if len(iterations) > 1:
                G_LOGGER.warning(f"Found {len(iterations)} iterations in tensor info file, only using the first one")
            for tensor, values in iterations[0].items():
                data = np.asarray(values)
                facts = {"min": float(data.min()), "max": float(data.max()), "avg": float(data.mean())}
                self.tensors[tensor] = facts
            break

    def get_tensor_statistics(self, tensor_name: str) -> str:
        """A tensor's numbers as text that follows its name; "" for one that is not there."""
        found = self.tensors.get(tensor_name, {})
        return "".join(f", {name}={value:.2f}" for name, value in found.items())
