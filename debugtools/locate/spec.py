"""What to locate, as a plain value."""

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import CompareSpec


class LocateSpec(Spec, frozen=True):
    """Find the nodes whose own error explains the difference of two sides.

    compare: the sides, inputs, tolerances and memory budget; the first side is the suspect, the second the reference.
    bodies: look into the body of an If, Loop or Scan that is a suspect. top: how many suspects are reported.
    """

    compare: CompareSpec
    bodies: bool = False
    top: int = 10
