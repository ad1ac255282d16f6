"""The types of NumPy arrays whose shape and element type are not said, and of the inputs of one iteration."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Feed = Mapping[str, Array]
"""Inputs by name."""
