"""The request for a lint, as a plain value."""

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec


class LintSpec(Spec, frozen=True):
    """One run of the linter. runner: the onnxruntime that nodes must load and run in; output: the report's file."""

    model: str
    model_options: ModelOptions = ModelOptions()
    runner: RunnerSpec = RunnerSpec(kind="onnxrt")
    feeds: FeedSpec = FeedSpec()
    output: str | None = None
