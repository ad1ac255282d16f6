"""Helpers of groups of options: from typed words to values."""

from layerwise.tools.args.util.util import *  # noqa: F403
from layerwise.tools.args.util.util import __all__ as __all__
