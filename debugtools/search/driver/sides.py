"""The comparison that a search rests on."""

import msgspec

from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.trt.options import built_anew
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.spec import DebugSpec


def prepared(spec: DebugSpec, *, anew: bool = False) -> CompareSpec:
    """The search's comparison; without runners, onnxruntime on the CPU gives the reference's tensors.

    anew: the suspect is built anew each time it is opened, for what changes from build to build.
    """
    assert spec.compare is not None
    suspect, *others = spec.compare.runners or [RunnerSpec(kind="onnxrt")]
    return msgspec.structs.replace(spec.compare, runners=[built_anew(suspect) if anew else suspect, *others])
