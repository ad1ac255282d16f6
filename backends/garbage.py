"""How often Python looks for garbage in a process of ours."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 10_000  # containers; Python's own 700 costs a command of a third of a second 10 ms
_OF_A_JOB = 100_000  # looking through 10,000 takes 2 ms, and nearly all of a job's objects stay


def collect_seldom(*, job: bool = False) -> None:
    """Collect garbage less often: a process that lives for one job imports many objects, and they all stay.

    job: nobody waits for its next picture.
    """
    gc.set_threshold(_OF_A_JOB if job else _NEW_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def not_collecting() -> Iterator[None]:
    """Collect none: for what makes many small objects that live to the end, or is timed."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
