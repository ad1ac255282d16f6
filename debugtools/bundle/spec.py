"""The request for a repro bundle, as a plain value."""

from layerwise._tool.backends.specs import Spec
from layerwise._tool.debugtools.compare.spec import CompareSpec


class BundleSpec(Spec, frozen=True):
    """nodes: positions of the suspect's nodes that the bundle's model keeps; none: the whole model.

    iteration: which inputs and golden outputs. output: a folder that does not exist yet.
    """

    compare: CompareSpec
    output: str
    nodes: list[int] = []
    iteration: int = 0
    title: str = ""
