"""What to compare, as a plain value."""

import msgspec

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import MetricName, ToleranceSpec


class DiffSpec(Spec, frozen=True):
    """Two files or folders. as_bytes: whatever they hold. tolerance, metrics: for tensors; the second side divides.

    align: of models, how what is written in different ways is paired: "auto", "names" (not at all), or a map's path.
    """

    a: str
    b: str
    as_bytes: bool = False
    metrics: list[MetricName] = msgspec.field(default_factory=lambda: ["simple"])
    tolerance: ToleranceSpec = ToleranceSpec()
    align: str = "auto"
