"""Results of inference and of comparisons, with Polygraphy's shape and file formats."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class IterationResult:
    """What one runner gave in one iteration.

    outputs: tensor name -> array, in the runner's order. Results read from a file decode an array when asked for.
    runtime: seconds, None if not known.
    """

    outputs: Mapping[str, Array]
    runtime: float | None = None
    runner_name: str = ""
