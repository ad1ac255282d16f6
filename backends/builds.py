"""Process-wide settings for engine builds: a progress listener, cancellation, and the function that writes reduced
precision into a graph.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Progress = Callable[[float, float | None, str], None]


def no_progress(done: float, total: float | None, text: str) -> None:
    """Ignore progress."""


class Handed:
    """progress: listens to builds without their own listener, from any thread, except very short ones, since a search
    makes many. over: end all builds, each at its next step. reduced: given a model, its TrtOptions and a function that
    takes text, returns a context with the model in lower precision.
    """

    progress: Progress = staticmethod(no_progress)
    over = False
    reduced: Callable[..., AbstractContextManager[Any]] | None = None


OF_PROCESS = Handed()
