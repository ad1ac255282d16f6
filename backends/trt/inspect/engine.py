"""Reads an engine: inputs, outputs, profiles, memory, build options, and layers."""

from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.trt.inference.engine import Engine, EngineTensor, io_tensors
from layerwise._tool.backends.trt.inspect.layers import EngineLayer, layers_of


@dataclass(frozen=True)
class Span:
    """Range of an input in a profile: shapes, or the values of a shape tensor (`values`)."""

    name: str
    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]
    values: bool = False


@dataclass(frozen=True)
class Profile:
    """An optimization profile. memory: bytes of device memory that a context needs in it."""

    inputs: list[Span]
    memory: int


@dataclass(frozen=True)
class EngineView:
    """An engine's contents. memory: bytes of device memory that a context needs, for the largest profile. weights:
    bytes of all weights, None if this version does not report them; streamable: of those that can be streamed. layers:
    per profile, in one list if the engine does not separate them. formats: memory formats of inputs and outputs, by
    name. facts: how it was built.
    """

    name: str
    refittable: bool
    tensors: list[EngineTensor]
    profiles: list[Profile]
    memory: int
    weights: int | None
    streamable: int
    layers: list[list[EngineLayer]] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def detailed(self) -> bool:
        """Return whether the layers have more than names."""
        return self.facts.get("Profiling Verbosity") == "DETAILED"


def engine_view(trt: Any, loaded: Engine) -> EngineView:
    """Read an engine. LayerwiseError if the inspector fails.

    No context is created, so the only device memory used is the engine's own.
    """
    engine = loaded.engine
    tensors, layers = io_tensors(trt, engine), _layers(trt, engine)
    return EngineView(
        name=engine.name,
        refittable=bool(engine.refittable),
        tensors=tensors,
        profiles=[_profile(engine, tensors, at) for at in range(engine.num_optimization_profiles)],
        memory=engine.device_memory_size_v2,
        weights=engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE) if hasattr(trt, "EngineStat") else None,
        streamable=engine.streamable_weights_size,
        layers=_by_profile(layers),
        formats={tensor.name: engine.get_tensor_format_desc(tensor.name) for tensor in tensors},
        facts=_facts(trt, engine, layers),
    )


def _profile(engine: Any, tensors: list[EngineTensor], at: int) -> Profile:
    inputs = [_span(engine, tensor, at) for tensor in tensors if tensor.is_input]
    return Profile(inputs, engine.get_device_memory_size_for_profile_v2(at))


def _span(engine: Any, tensor: EngineTensor, at: int) -> Span:
    if engine.is_shape_inference_io(tensor.name):
        values = [tuple(each) for each in engine.get_tensor_profile_values(at, tensor.name)]
        if len(values) == 3:
            return Span(tensor.name, values[0], values[1], values[2], values=True)
    low, likely, high = (tuple(shape) for shape in engine.get_tensor_profile_shape(tensor.name, at))
    return Span(tensor.name, low, likely, high)


def _layers(trt: Any, engine: Any) -> list[EngineLayer]:
    inspector = engine.create_engine_inspector()
    if inspector is None:
        raise LayerwiseError("TensorRT makes no inspector for the engine")
    return layers_of(inspector.get_engine_information(trt.LayerInformationFormat.JSON))


def _by_profile(layers: list[EngineLayer]) -> list[list[EngineLayer]]:
    count = 1 + max((layer.profile for layer in layers), default=0)
    found: list[list[EngineLayer]] = [[] for _ in range(min(count, 1 + len(layers)))]
    for layer in layers:
        found[min(layer.profile, len(found) - 1)].append(layer)
    return found


def _facts(trt: Any, engine: Any, layers: list[EngineLayer]) -> dict[str, str]:
    sources = [name for name, at in trt.TacticSource.__members__.items() if engine.tactic_sources >> int(at) & 1]
    made = dict.fromkeys(tensor.name for layer in layers for tensor in layer.outputs)
    debug = [name for name in made if engine.is_debug_tensor(name)]
    return {
        "Profiling Verbosity": engine.profiling_verbosity.name,
        "Engine Capability": engine.engine_capability.name,
        "Hardware Compatibility": engine.hardware_compatibility_level.name,
        "Tactic Sources": ", ".join(sources) or "none",
        "Auxiliary Streams": str(engine.num_aux_streams),
        **({"Debug Tensors": ", ".join(debug)} if debug else {}),
    }
