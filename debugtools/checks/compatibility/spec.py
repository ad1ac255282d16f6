"""The request for a compatibility check, as a plain value."""

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec


class CompatibilitySpec(Spec, frozen=True):
    """A model and the backends to probe."""

    model: str
    model_options: ModelOptions = ModelOptions()
    runners: list[RunnerSpec] = []
    feeds: FeedSpec = FeedSpec()
