"""Which measurement answers which step of the flowchart."""

from collections.abc import Callable

from layerwise._tool.debugtools.triage import cutting, measure
from layerwise._tool.debugtools.triage.finding import Case, Finding

MEASURES: dict[str, Callable[[Case], Finding]] = {
    "original": measure.reproduce,
    "sanitize": measure.sanitize,
    "inputs": measure.inputs,
    "intermittent": measure.intermittent,
    "repeat": measure.repeat,
    "layerwise": measure.layerwise,
    "extract": cutting.extract,
    "reduce": cutting.reduce,
    "check": cutting.check,
    "report": cutting.report,
}
