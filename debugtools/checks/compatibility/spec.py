"""The request for a compatibility check, and its result, as plain values."""

from msgspec import Struct

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec


class CompatibilitySpec(Spec, frozen=True):
    """A model and the backends to probe."""

    model: str
    model_options: ModelOptions = ModelOptions()
    runners: list[RunnerSpec] = []
    feeds: FeedSpec = FeedSpec()


class OperatorEntry(Struct):
    """A row of the table operators: a kind of node in one backend. backend: its number; version: of the operator's
    schema; types: of the inputs, None if unknown; nodes: their number; first: name of the first; reason: its error.
    """

    backend: int
    op: str = ""
    domain: str = ""
    version: int = 0
    types: list[str] | None = None
    code: str = ""
    nodes: int = 0
    first: str = ""
    reason: str = ""


class BackendRow(Struct):
    """A row of the table backends. takes: it loads the model, and runs it, unless there were no inputs
    (ran); nodes: of the model; seconds: the probe took.
    """

    backend: int
    name: str = ""
    kind: str = ""
    available: bool = True
    takes: bool = False
    ran: bool = False
    reason: str = ""
    nodes: int = 0
    seconds: float = 0.0


class CompatibilityResult(Struct):
    """passed: all backends support the model. conclusion: what was found, in a sentence."""

    passed: bool
    backends: list[BackendRow]
    conclusion: str = ""
