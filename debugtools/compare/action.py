"""The job action `compare`: from a CompareSpec to the rows of the layer table and a verdict."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

from layerwise._tool.backends.installed import doubled
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.spec import CompareSpec, resumed_tables

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def compare(context: "JobContext") -> CompareResult:
    """Run the comparison that `context.params` describes (a CompareSpec).

    Emits rows of the tables inputs, runs, layers and (where something was not finite) validate; returns the
    verdict with its summary. LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, CompareSpec, "the comparison")
    return context.resumed(lambda: compared(context, spec), resumed_tables(spec))


def compared(context: "JobContext", spec: CompareSpec) -> CompareResult:
    """Run a comparison within a job, as `compare` does."""
    with ExitStack() as stack:
        if spec.model_options.fp16:
            from layerwise._tool.debugtools.compare.sides.save_model import converted

            spec = stack.enter_context(converted(spec, context.folder / "half"))
        return _compare(context, spec)


def _compare(context: "JobContext", spec: CompareSpec) -> CompareResult:
    if spec.model_options.save_onnx is not None:
        from layerwise._tool.debugtools.compare.sides.save_model import save_model

        save_model(spec)
    from layerwise._tool.debugtools.compare.sides.setup import Setup

    if any(runner.kind == "onnxrt" for runner in spec.runners) and (wrong := doubled()):
        context.warn(wrong)
    setup = Setup(spec)
    setup.start()
    from layerwise._tool.debugtools.compare.run import run_comparison  # while the sessions open

    setup.read()

    return run_comparison(context, setup)
