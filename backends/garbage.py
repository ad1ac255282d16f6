"""How often Python looks for garbage in a process of ours."""

import gc

_NEW_OBJECTS = 10_000  # containers; Python's own 700 costs a command of a third of a second 10 ms


def collect_seldom() -> None:
    """Collect garbage less often: a process that lives for one job imports many objects, and they all stay."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
