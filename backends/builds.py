"""What builds of engines in this process are handed: who hears of them, whether they are to end, and what writes
reduced precision into a graph.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Progress = Callable[[float, float | None, str], None]


def no_progress(done: float, total: float | None, text: str) -> None:
    """Ignore progress."""


class Handed:
    """progress: hears of builds that nobody else listens to, from any thread, but not of those that are over at once: a
    search makes many. over: they are to end, each at its next step. reduced: makes of a model, its TrtOptions and a
    function that takes text a context with the model in lower precision.
    """

    progress: Progress = staticmethod(no_progress)
    over = False
    reduced: Callable[..., AbstractContextManager[Any]] | None = None


OF_PROCESS = Handed()
