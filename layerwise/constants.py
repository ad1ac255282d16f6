"""Constants that scripts refer to."""

from layerwise.config import AUTOINSTALL_DEPS, INTERNAL_CORRECTNESS_CHECKS

MARK_ALL = "mark-all"
"""In place of the names of outputs: all tensors."""
DEFAULT_SHAPE_VALUE = 1
DEFAULT_SEED = 1
TAB = "    "
TYPE_MARKER = "polygraphy_class"
"""The key of JSON objects that names the class they are decoded to."""
LEGACY_TYPE_MARKER = "polygraphy_serialized_json_type"
"""What old files have as the value of a key that names the class."""

__all__ = [
    "AUTOINSTALL_DEPS", "DEFAULT_SEED", "DEFAULT_SHAPE_VALUE", "INTERNAL_CORRECTNESS_CHECKS", "LEGACY_TYPE_MARKER",
    "MARK_ALL", "TAB", "TYPE_MARKER",
]  # fmt: skip
