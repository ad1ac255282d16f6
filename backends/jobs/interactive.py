"""The action of a warm worker: it answers requests one after the other and is gone after some idle time."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.actions import find
from layerwise._tool.backends.jobs.context import JobContext

_IDLE = 300.0


def serve(context: JobContext, requests: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Answer requests until none came for `idle` seconds (a parameter of the job, 300 by default), or until the process
    that the parameter `beside` names has ended. requests: name -> "module:function" of its handler.

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
