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

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.context import JobContext

ACTIONS = {"interactive": f"{__name__}:serve"}
AHEAD: tuple[str, ...] = ()
_IDLE = 300.0


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


def serve(context: JobContext, requests: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The action of a warm worker: answer requests until none came for `idle` seconds (a parameter of the job, 300 by
    default), or until the process that the parameter `beside` names has ended. requests: name -> "module:function".

    A handler is called as `handler(context, params)` and returns a dict; it may keep what is costly to make
    again, an open model for example, in module state. Its answer is a row of table "answers": {"id", "ok",
    "data" or "error"}.
    """
    answered = 0
    for request in context.replies(float(context.params.get("idle", _IDLE)), int(context.params.get("beside", 0))):
        context.row("answers", {"id": request.get("id"), **_answer(context, request, requests or {})})
        answered += 1
    return {"answered": answered}


def _answer(context: JobContext, request: dict[str, Any], requests: Mapping[str, str]) -> dict[str, Any]:
    try:
        handler = find(str(request.get("request")), requests, "LAYERWISE_EXTRA_REQUESTS", "request")
        return {"ok": True, "data": handler(context, request.get("params") or {})}
    except LayerwiseError as error:
        return {"ok": False, "error": str(error)}
    except Exception as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
