"""The type of NumPy arrays whose shape and element type are not said."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
