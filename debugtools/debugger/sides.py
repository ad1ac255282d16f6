"""The comparison that a search rests on."""

import msgspec

from backends.specs import RunnerSpec
from debugtools.compare.spec import CompareSpec
from debugtools.debugger.spec import DebugSpec


def prepared(spec: DebugSpec) -> CompareSpec:
    """The search's comparison; without runners, onnxruntime on the CPU gives the reference's tensors."""
    assert spec.compare is not None
    runners = spec.compare.runners or [RunnerSpec(kind="onnxrt")]
    return msgspec.structs.replace(spec.compare, runners=runners)
