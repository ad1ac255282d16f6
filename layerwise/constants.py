"""Constants that scripts refer to."""

MARK_ALL = "mark-all"
DEFAULT_SHAPE_VALUE = 1
DEFAULT_SEED = 1
TAB = "    "
