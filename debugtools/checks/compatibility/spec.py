"""What to probe, and what is found, as plain values."""

from msgspec import Struct

from layerwise._tool.backends.specs import FeedSpec, ModelOptions, RunnerSpec, Spec


class CompatibilitySpec(Spec, frozen=True):
    """A model and the backends that are asked whether they take it."""

    model: str
    model_options: ModelOptions = ModelOptions()
    runners: list[RunnerSpec] = []
    feeds: FeedSpec = FeedSpec()


class OperatorEntry(Struct):
    """A row of the table operators: a kind of node in one backend. backend: its number; version: of the operator's
    schema; types: of the inputs, None if unknown; nodes: how many; first: name of the first; reason: what it met.
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
    """A row of the table backends. takes: it loads the model, and runs it, unless there was nothing to run it with
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
    """passed: all backends take the model."""

    passed: bool
    backends: list[BackendRow]
