"""The old place of the runtime."""

from .bindings.runtime import *  # noqa: F403
