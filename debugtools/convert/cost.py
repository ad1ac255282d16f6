"""What a conversion to INT8 costs in accuracy: both models run on the inputs, and how far the outputs are apart."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

_RUNNER = RunnerSpec(kind="onnxrt", providers=["cpu"])


class Cost(Struct, frozen=True):
    """outputs: relative L2 error of each output of floats over all inputs, inf where it is not finite; inputs: how
    many there were.
    """

    outputs: dict[str, float]
    inputs: int

    @property
    def worst(self) -> str:
        """The output that is off most; "" if none holds floats."""
        return max(self.outputs, key=lambda name: self.outputs[name], default="")


def measured(before: Path, after: Path, feeds: Iterable[Mapping[str, Array]]) -> Cost:
    """Run both models. LayerwiseError for one that does not run."""
    apart, whole = dict[str, float](), dict[str, float]()
    count = 0
    with open_runner(_RUNNER, Loadable(path=before)) as good, open_runner(_RUNNER, Loadable(path=after)) as low:
        for feed in feeds:
            count += 1
            expected, made = good.infer(feed).outputs, low.infer(feed).outputs
            for name, array in expected.items():
                if array.dtype.kind == "f" and name in made and made[name].shape == array.shape:
                    squares = np.square(np.subtract(made[name], array, dtype=np.float64)).sum()
                    apart[name] = apart.get(name, 0.0) + float(squares)
                    whole[name] = whole.get(name, 0.0) + float(np.square(array, dtype=np.float64).sum())
    return Cost({name: _relative(apart[name], whole[name]) for name in apart}, count)


def _relative(apart: float, whole: float) -> float:
    if not math.isfinite(apart) or not math.isfinite(whole):
        return math.inf
    return math.sqrt(apart / whole) if whole else math.inf if apart else 0.0
