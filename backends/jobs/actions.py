"""Actions by name, resolved only inside the worker.

Who starts jobs names the module that offers their actions: its `ACTIONS` (name -> "module:function"), `AHEAD` (what
most of them import, which a spare worker does before it has a job), and `hand_over`, which gives the packages below
what they need from it. This module offers what needs nothing from above.

LAYERWISE_EXTRA_ACTIONS and LAYERWISE_EXTRA_REQUESTS ("name=module:function,…") add more, for tests and
plugins.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError

ACTIONS = {"interactive": "layerwise._tool.backends.jobs.interactive:serve"}
AHEAD: tuple[str, ...] = ()


def hand_over() -> None:
    """Nothing is needed."""


def find_action(name: str, actions: str) -> Callable[..., Any]:
    """The function of an action that the module `actions` offers. Raises UsageError when there is none of that name."""
    offering = importlib.import_module(actions)
    offering.hand_over()
    return find(name, offering.ACTIONS, "LAYERWISE_EXTRA_ACTIONS", "action")


def find(name: str, table: Mapping[str, str], variable: str, word: str) -> Callable[..., Any]:
    """The function that a table, or the environment `variable`, has under a name. UsageError when neither has."""
    extra = dict(part.split("=", 1) for part in os.environ.get(variable, "").split(",") if "=" in part)
    place = {**table, **extra}.get(name)
    if place is None:
        raise UsageError(f"there is no {word} {name!r}: there are {', '.join(sorted({**table, **extra}))}")
    module, _, function = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
