"""Real Polygraphy's verdict and numbers for one pair of arrays, quietly."""

import warnings
from typing import Any

import numpy as np
from polygraphy.comparator import IterationResult
from polygraphy.logger import G_LOGGER


def polygraphy_says(func: Any, a: np.ndarray, b: np.ndarray) -> Any:
    """The result object (or bare bool) of a compare function of Polygraphy's."""
    before, G_LOGGER.module_severity = G_LOGGER.module_severity, G_LOGGER.CRITICAL
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            first = IterationResult(outputs={"x": a}, runner_name="first")
            second = IterationResult(outputs={"x": b}, runner_name="second")
            return func(first, second)["x"]
    finally:
        G_LOGGER.module_severity = before
