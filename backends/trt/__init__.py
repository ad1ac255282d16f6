"""TensorRT 10 and 11: building, caching and running engines. `tensorrt` and `cuda` are imported inside functions only.

Written for TensorRT 11; what only one version has is listed in `backends.trt.capabilities`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise._tool.backends.runner import Loadable, RunnerBase
    from layerwise._tool.backends.specs import RunnerSpec


def open_trt(spec: "RunnerSpec", model: "Loadable", *, name: str) -> "RunnerBase":
    """Build or load the engine that `spec` describes and open it as a runner.

    With dynamic inputs that no profile covers, the engine is built on the first feed, for its shapes.

    Raises MissingDependency if TensorRT is not installed, UsageError for options that do not match the model or the
    version, BadFile for an engine that cannot be loaded, LayerwiseError if the build fails.
    """
    from layerwise._tool.backends.trt.inference.late import LateRunner, PartRunner, needs_shapes
    from layerwise._tool.backends.trt.inference.runner import engine_path, opened_now
    from layerwise._tool.backends.trt.library import cudart, tensorrt
    from layerwise._tool.backends.trt.options import trt_options

    options = trt_options(spec.options)
    tensorrt(), cudart()
    if options.part:
        return PartRunner(spec, model, options, name)
    if engine_path(options, model) is None and needs_shapes(model, options):
        return LateRunner(spec, model, options, name)
    return opened_now(spec, model, options, name)
