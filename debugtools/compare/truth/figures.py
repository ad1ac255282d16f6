"""Multiples of what rounding explains: which are acceptable, and how they are written."""

LIMIT = 4.0
"""Times what rounding explains, above which a layer is not acceptable."""


def times(value: float | None) -> str:
    """Two digits are enough: 2.1, 140, 3.2e+04; "-" for what is not known."""
    return "-" if value is None else f"{value:.2g}" if value < 100 or value >= 1e4 else f"{value:.0f}"
