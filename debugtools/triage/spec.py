"""A triage as a plain value: what the command line and the app submit as a job."""

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import CompareSpec


class TriageSpec(Spec, frozen=True):
    """What goes wrong, and how the flowchart is walked.

    compare: the comparison that fails. answers: step -> the user's answer, taken in place of a measurement.
    ask: put each answer to the user before going on. tries: how often a run is repeated, and how many seeds are tried.
    output: folder for report and bundle; None: the job's own.
    """

    compare: CompareSpec
    answers: dict[str, str] = {}
    ask: bool = False
    tries: int = 3
    output: str | None = None
