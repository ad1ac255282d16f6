"""What to build again and again, and who judges."""

from layerwise._tool.backends.specs import Spec
from layerwise._tool.backends.trt.options import TrtOptions, trt_options
from layerwise._tool.debugtools.search.spec import DebugSpec

ENGINE = "polygraphy_debug.engine"


class BuildsSpec(Spec, frozen=True):
    """One repetition of a build.

    search: model, judge, files, and when to stop; its first runner is the engine that is built, of kind "trt".
    judged: False where that an engine can be built is all that is asked. narrow: then find the tactics that do it.
    """

    search: DebugSpec
    judged: bool = True
    narrow: bool = False

    @property
    def options(self) -> TrtOptions:
        """How the engine is built. UsageError where the description holds none."""
        compare = self.search.compare
        return trt_options(compare.runners[0].options if compare and compare.runners else {})
