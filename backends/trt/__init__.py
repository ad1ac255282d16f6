"""TensorRT 10 and 11: engines built, kept, and run. `tensorrt` and `cuda` are imported inside functions alone.

Written for TensorRT 11; what only one version has is in `backends.trt.capabilities`, by name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layerwise._tool.backends.runner import Loadable, RunnerBase
    from layerwise._tool.backends.specs import RunnerSpec


def open_trt(spec: "RunnerSpec", model: "Loadable", *, name: str) -> "RunnerBase":
    """Build or load the engine that `spec` describes and open it as a runner.

    Dynamic inputs that no profile describes make the engine wait for the first feed, whose shapes it is built for.

    Raises MissingDependency where TensorRT is not installed, UsageError for options that do not fit the model or the
    version, BadFile for an engine that cannot be loaded, LayerwiseError where the build fails.
    """
    from layerwise._tool.backends.trt.inference.late import LateRunner, needs_shapes
    from layerwise._tool.backends.trt.inference.parts import PartRunner
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
