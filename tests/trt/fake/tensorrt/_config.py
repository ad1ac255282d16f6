"""IBuilderConfig and IOptimizationProfile."""

from typing import Any

from ._arguments import CLASSES
from ._classes import behaves, new
from ._timing import timing_cache
from ._values import dims

DEVICE_MEMORY = 16 << 30


@behaves("IOptimizationProfile")
class _Profile:
    _shapes: dict[str, list[tuple[int, ...]]]
    _shape_values: dict[str, list[list[int]]]

    def set_shape(self, input: str, min: Any, opt: Any, max: Any) -> None:
        triple = [tuple(min), tuple(opt), tuple(max)]
        for which, shape in zip(("min", "opt", "max"), triple, strict=True):
            so_far = triple[: ("min", "opt", "max").index(which) + 1]
            if len(shape) != len(triple[0]) or not _ordered(so_far):
                raise RuntimeError(f"Shape provided for {which} is inconsistent with other shapes.")
        self._shapes[input] = triple

    def get_shape(self, input: str) -> list[Any]:
        return [dims(shape) for shape in self._shapes.get(input, ())]

    def set_shape_input(self, input: str, min: Any, opt: Any, max: Any) -> None:
        if not _ordered([min, opt, max]):
            raise RuntimeError("min input provided for shape tensor is inconsistent with other inputs.")
        self._shape_values[input] = [list(min), list(opt), list(max)]

    def get_shape_input(self, input: str) -> list[list[int]]:
        return [list(values) for values in self._shape_values.get(input, ())]


def _ordered(shapes: Any) -> bool:
    return all(sorted(sizes) == list(sizes) for sizes in zip(*shapes, strict=True))


def profile() -> Any:
    """An empty profile."""
    return new("IOptimizationProfile", _shapes={}, _shape_values={})


def _mask(name: str) -> property:
    return property(
        lambda self: self._values.get(name, 0),
        lambda self, v: self._values.__setitem__(name, v),
    )


@behaves("IBuilderConfig")
class _Config:
    _values: dict[str, Any]
    _profiles: list[Any]
    _pools: dict[str, int]
    _preview: dict[str, bool]
    _cache: Any

    flags = _mask("flags")
    quantization_flags = _mask("quantization_flags")
    num_optimization_profiles = property(lambda self: len(self._profiles))
    all_build_routes = property(lambda self: "")

    def set_flag(self, flag: Any) -> None:
        self._values["flags"] = self._values.get("flags", 0) | 1 << int(flag)

    def clear_flag(self, flag: Any) -> None:
        self._values["flags"] = self._values.get("flags", 0) & ~(1 << int(flag))

    def get_flag(self, flag: Any) -> bool:
        return bool(self._values.get("flags", 0) >> int(flag) & 1)

    def set_quantization_flag(self, flag: Any) -> None:
        self._values["quantization_flags"] = self._values.get("quantization_flags", 0) | 1 << int(flag)

    def clear_quantization_flag(self, flag: Any) -> None:
        self._values["quantization_flags"] = self._values.get("quantization_flags", 0) & ~(1 << int(flag))

    def get_quantization_flag(self, flag: Any) -> bool:
        return bool(self._values.get("quantization_flags", 0) >> int(flag) & 1)

    def _has(self, name: str) -> bool:
        """Whether a builder flag is set, by name; False where this version lacks it."""
        flag = CLASSES["BuilderFlag"].__members__.get(name)
        return flag is not None and bool(self._values.get("flags", 0) >> int(flag) & 1)

    def add_optimization_profile(self, profile: Any) -> int:
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_calibration_profile(self, profile: Any) -> bool:
        self._calibration_profile = profile
        return True

    def get_calibration_profile(self) -> Any:
        return getattr(self, "_calibration_profile", None)

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        self._pools[pool.name] = pool_size

    def get_memory_pool_limit(self, pool: Any) -> int:
        return self._pools.get(pool.name, DEVICE_MEMORY if pool.name in ("WORKSPACE", "TACTIC_DRAM") else 0)

    def set_preview_feature(self, feature: Any, enable: bool) -> None:
        self._preview[feature.name] = enable

    def get_preview_feature(self, feature: Any) -> bool:
        return self._preview.get(feature.name, False)

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        self._sources = tactic_sources
        return True

    def get_tactic_sources(self) -> int:
        everything = sum(1 << int(m) for m in CLASSES["TacticSource"].__members__.values())
        return getattr(self, "_sources", everything)

    def create_timing_cache(self, serialized_timing_cache: Any) -> Any:
        return timing_cache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
        self._cache = cache
        return True

    def get_timing_cache(self) -> Any:
        return self._cache

    def set_device_type(self, layer: Any, device_type: Any) -> None:
        self._devices[layer._state.name] = device_type

    def get_device_type(self, layer: Any) -> Any:
        return self._devices.get(layer._state.name, CLASSES["DeviceType"].GPU)

    def is_device_type_set(self, layer: Any) -> bool:
        return layer._state.name in self._devices

    def reset_device_type(self, layer: Any) -> None:
        self._devices.pop(layer._state.name, None)

    def can_run_on_DLA(self, layer: Any) -> bool:
        return False

    def reset(self) -> None:
        self._values.clear()
        self._values.update(_starting())
        self._profiles.clear()
        self._pools.clear()
        self._cache = None


def _starting() -> dict[str, Any]:
    """The values of a new config: TF32 is on."""
    tf32 = 1 << int(CLASSES["BuilderFlag"].TF32)
    return {"flags": tf32, "builder_optimization_level": 3, "avg_timing_iterations": 1, "max_num_tactics": -1,
            "DLA_core": -1, "max_aux_streams": -1}  # fmt: skip


def config() -> Any:
    """A new IBuilderConfig."""
    made = new("IBuilderConfig", _profiles=[], _pools={}, _preview={}, _devices={}, _cache=None)
    made._values.update(_starting())
    return made
