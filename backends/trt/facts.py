"""How an engine is built, for a script without our code."""

from typing import Any

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.building.config import wanted_flags
from layerwise._tool.backends.trt.building.precision import by_flags
from layerwise._tool.backends.trt.building.typing import data_type
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import trt_options


def engine_facts(runner: RunnerSpec) -> dict[str, Any]:
    """Return builder flags, memory pools with limits in bytes, and layer types by name, for repro_trt.py.

    The accompanying model already has the precision written into its graph. UsageError for what a script
    cannot repeat: a user-defined config, and TensorRT 10's calibration.
    """
    trt, options = tensorrt(), trt_options(runner.options)
    flags, config = by_flags(trt, options), options.config
    if config.config_script or config.config_postprocess or options.network.postprocess:
        raise UsageError("a bundle cannot hold scripts that change the network or its config")
    if config.int8 and flags:
        raise UsageError("a bundle cannot hold TensorRT 10's calibration; with --strongly-typed the model holds it")
    precisions = options.network.layer_precisions if flags else {}
    return {
        "flags": [*(["TF32"] if config.tf32 else []), *wanted_flags(trt, config, by_flags=flags)],
        "strongly_typed": not flags,
        "layers": {name: data_type(trt, kind, "--layer-precisions").name for name, kind in precisions.items()},
        "optimization_level": config.optimization_level,
        "pools": {name.upper(): size for name, size in config.pool_limits.items()},
    }
