"""Builder configs."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.building import config as configs
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions
from layerwise._tool.backends.trt.tactics.record import use_timing_cache
from layerwise.backend.base import BaseLoader, immediate
from layerwise.backend.trt.calibrator import calibrate_with
from layerwise.backend.trt.logger import MESSAGES, tell
from layerwise.backend.trt.profile import Profile
from layerwise.backend.trt.tactics import CacheTactics
from layerwise.backend.trt.util import inherit_and_extend_docstring
from layerwise.logger import G_LOGGER

__all__ = [
    "CreateConfig", "PostprocessConfig", "create_config", "inherit_and_extend_docstring", "postprocess_config",
]  # fmt: skip

_SWITCHES = {
    "tf32", "fp16", "int8", "fp8", "bf16", "use_dla", "allow_gpu_fallback", "sparse_weights", "refittable",
    "strip_plan", "direct_io", "version_compatible", "exclude_lean_runtime", "error_on_timing_cache_miss",
    "disable_compilation_cache", "weight_streaming",
}  # fmt: skip
_SAME = {"precision_constraints", "max_aux_streams"}
_NAMES = {
    "restricted": "safety_restricted",
    "builder_optimization_level": "optimization_level",
    "hardware_compatibility_level": "hardware_compatibility",
    "tiling_optimization_level": "tiling",
}
_ENUMS = {
    "profiling_verbosity", "engine_capability", "hardware_compatibility_level", "runtime_platform",
    "tiling_optimization_level",
}  # fmt: skip
_ENUM_LISTS = {"tactic_sources", "preview_features", "quantization_flags"}


class CreateConfig(BaseLoader[Any]):
    """A builder config; called with (builder, network).

    profiles: one by default, filled in from the network. calibrator: for int8. load_timing_cache: a file; nothing is
    read where it is not there. Other options: tf32, fp16, bf16, int8, fp8 (on TensorRT 11 written into the graph where
    EngineFromNetwork has this and a NetworkFromOnnx loader, UsageError elsewhere), memory_pool_limits, tactic_sources,
    and all of TensorRT's that Polygraphy's CreateConfig takes; enumerators are TensorRT's own. UsageError for an option
    that is none.
    """

    def __init__(
        self,
        tf32: bool | None = None,
        fp16: bool | None = None,
        int8: bool | None = None,
        fp8: bool | None = None,
        bf16: bool | None = None,
        calibrator: Any = None,
        use_dla: bool | None = None,
        allow_gpu_fallback: bool | None = None,
        **kwargs: Any,
    ) -> None:
        given = dict(kwargs)
        profiles = given.pop("profiles", None)
        self.profiles = [Profile()] if profiles is None else list(profiles)
        self.calibrator = calibrator
        self.load_timing_cache = self.timing_cache_path = given.pop("load_timing_cache", None)
        self.algorithm_selector = given.pop("algorithm_selector", None)
        self.progress_monitor = given.pop("progress_monitor", None)
        switches = {"tf32": tf32, "fp16": fp16, "int8": int8, "fp8": fp8, "bf16": bf16, "use_dla": use_dla}
        self.options = _options({**switches, "allow_gpu_fallback": allow_gpu_fallback, **given})
        if calibrator is not None and not int8:
            G_LOGGER.warning("A calibrator was provided to `CreateConfig`, but int8 mode was not enabled: int8=True?")

    def __getattr__(self, name: str) -> Any:
        """What an option was given as or, if it was not, its default."""
        options = self.__dict__.get("options")
        if name.startswith("_") or options is None or _NAMES.get(name, name) not in options.__struct_fields__:
            raise AttributeError(name)
        return getattr(options, _NAMES.get(name, name))

    def without_precision(self) -> "CreateConfig":
        """The same, no precision below FP32 asked for."""
        made = copy.copy(self)
        made.options = msgspec.structs.replace(self.options, fp16=False, bf16=False, int8=False, fp8=False)
        return made

    def call_impl(self, builder: Any, network: Any) -> Any:
        trt = tensorrt()
        config = builder.create_builder_config()
        configs.apply(trt, builder, config, self.options, by_flags=True, tell=tell)
        profiles = [] if network is None else self._add_profiles(builder, network, config)
        if self.options.int8 and self.calibrator is not None and profiles:
            calibrate_with(self.calibrator, network, config, profiles[0])
        if not self._select_tactics(config):
            self._use_timing_cache(config)
        if self.progress_monitor is not None:
            config.progress_monitor = self.progress_monitor
        return config

    def _add_profiles(self, builder: Any, network: Any, config: Any) -> list[Any]:
        made = [profile.to_trt(builder, network) for profile in self.profiles]
        for profile in made:
            if config.add_optimization_profile(profile) < 0:
                raise UsageError(f"TensorRT refuses profile {made.index(profile)}")
        return made

    def _select_tactics(self, config: Any) -> bool:
        """Whether the config has got a timing cache on the way."""
        selector = self.algorithm_selector
        if isinstance(selector, CacheTactics):
            return selector.attach(config)
        if selector is not None:
            if not able(tensorrt(), "algorithm_selector"):
                raise UsageError(lacks(tensorrt(), "algorithm_selector"))
            config.algorithm_selector = selector
            if not self.load_timing_cache:
                G_LOGGER.warning("Disabling tactic timing cache because algorithm selector is enabled.")
                config.set_flag(tensorrt().BuilderFlag.DISABLE_TIMING_CACHE)
        return False

    def _use_timing_cache(self, config: Any) -> None:
        file = Path(self.load_timing_cache) if self.load_timing_cache else None
        if file is not None and not file.is_file():
            G_LOGGER.warning(f"There is no timing cache {file}: TensorRT begins with an empty one.")
            file = None
        use_timing_cache(config, [file] if file else [], MESSAGES, file)


def _options(given: Mapping[str, Any]) -> ConfigOptions:
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in _SWITCHES | _SAME | _ENUMS | _ENUM_LISTS | {*_NAMES, "memory_pool_limits"}:
            raise UsageError(f"CreateConfig has no option {name}")
        if value is not None:
            found |= _option(name, value)
    return ConfigOptions(**found)


def _option(name: str, value: Any) -> dict[str, Any]:
    if name == "memory_pool_limits":
        return {"pool_limits": {_name(pool): int(size) for pool, size in value.items()}}
    if name in _ENUM_LISTS:
        return {name: [_name(entry) for entry in value]}
    return {_NAMES.get(name, name): _name(value) if name in _ENUMS else value}


def _name(enumerator: Any) -> str:
    return str(getattr(enumerator, "name", enumerator))


class PostprocessConfig(BaseLoader[Any]):
    """Calls `func(builder, network, config)` on a config, made by a loader or given."""

    def __init__(self, config: Any, func: Callable[..., Any]) -> None:
        if not callable(func):
            G_LOGGER.critical(f"Object {func} (of type {type(func)}) is not a callable.")
        self.config = config
        self.func = func

    def call_impl(self, builder: Any, network: Any) -> Any:
        config = self.config(builder, network) if callable(self.config) else self.config
        if network is not None:
            self.func(builder, network, config)
        return config


create_config = immediate(CreateConfig)
postprocess_config = immediate(PostprocessConfig)
