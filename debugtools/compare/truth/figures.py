"""Multiples of what rounding explains: which are acceptable, and how they are written."""

LIMIT = 4.0
"""Times what rounding explains, above which a layer is not acceptable."""


def times(value: float | None) -> str:
    """Two digits are enough: 2.1, 140, 32,000; "-" for what is not known."""
    if value is None:
        return "-"
    if value < 100 or value >= 1e9:
        return f"{value:.2g}"
    return f"{value:.0f}" if value < 1e4 else f"{float(f'{value:.2g}'):,.0f}"
