"""What jobs can do: names and where the code is, resolved only inside the worker.

LAYERWISE_EXTRA_ACTIONS and LAYERWISE_EXTRA_REQUESTS ("name=module:function,…") add more, for tests and
plugins.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from backends.errors import UsageError

ACTIONS: dict[str, str] = {
    "compare": "debugtools.compare.action:compare",
    "locate": "debugtools.locate.action:locate",
    "debug_reduce": "debugtools.search.driver.action:debug_reduce",
    "debug_bisect": "debugtools.search.driver.action:debug_bisect",
    "debug_repeat": "debugtools.search.driver.action:debug_repeat",
    "debug_build": "debugtools.search.builds.action:debug_build",
    "debug_precision": "debugtools.search.precision.action:debug_precision",
    "bench": "debugtools.bench.action:bench",
    "lint": "debugtools.checks.lint.action:lint",
    "capability": "debugtools.engines.capability.action:capability",
    "compatibility": "debugtools.checks.compatibility.action:compatibility",
    "convert": "debugtools.convert.action:convert",
    "build_engine": "debugtools.convert.engine:build",
    "plugins": "surgery.plugins.action:plugins",
    "diff": "debugtools.diff.action:diff",
    "tensor_view": "debugtools.compare.tensor_view:tensor_view",
    "index": "surgery.graph.action:action_index",
    "inspect_model": "surgery.inspect.action:action_inspect_model",
    "inspect_trt": "debugtools.engines.inspect.action:inspect_trt",
    "inspect_data": "backends.saved_data.actions:action_inspect_data",
    "data_concat": "backends.saved_data.actions:action_data_concat",
    "data_merge": "backends.saved_data.actions:action_data_merge",
    "sanitize": "surgery.sanitize.action:sanitize",
    "run_shapes": "surgery.types.by_running:run_shapes",
    "bundle": "debugtools.bundle.action:bundle",
    "triage": "debugtools.triage.action:triage",
    "edit": "debugtools.edits.action:edit",
    "interactive": "backends.jobs.interactive:serve",
}

REQUESTS: dict[str, str] = {
    "weight_statistics": "surgery.weights.statistics:answer_weights",
    "edit_types": "surgery.history.requests:answer_types",
    "edit_result": "surgery.history.requests:answer_result",
    "edit_write": "surgery.history.requests:answer_write",
    "edit_script": "surgery.history.requests:answer_script",
    "edit_check": "surgery.history.requests:answer_check",
    "edit_effect": "debugtools.edits.effect:answer_effect",
}


def find_action(name: str) -> Callable[..., Any]:
    """The function of an action. Raises UsageError when there is none of that name."""
    return _find(name, ACTIONS, "LAYERWISE_EXTRA_ACTIONS", "action")


def find_request(name: str) -> Callable[..., Any]:
    """The function that answers a request to an interactive worker. Raises UsageError when there is none."""
    return _find(name, REQUESTS, "LAYERWISE_EXTRA_REQUESTS", "request")


def _find(name: str, table: Mapping[str, str], variable: str, word: str) -> Callable[..., Any]:
    extra = dict(part.split("=", 1) for part in os.environ.get(variable, "").split(",") if "=" in part)
    place = {**table, **extra}.get(name)
    if place is None:
        raise UsageError(f"there is no {word} {name!r}: there are {', '.join(sorted({**table, **extra}))}")
    module, _, function = place.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found
