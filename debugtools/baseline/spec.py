"""A baseline to be made or checked, as a plain value."""

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import CompareSpec


class BaselineSpec(Spec, frozen=True):
    """A comparison whose layers are held against a file, or written to one.

    file: the baseline that it is held against; "" where there is none. output: where the errors of now are written.
    repeat: how often the comparison is repeated where layers are near their bounds; None finds that out. paths: the
    file keeps where models and inputs are; not so where they are made anew each time.
    """

    compare: CompareSpec
    file: str = ""
    output: str | None = None
    repeat: int | None = None
    paths: bool = True
