"""What jobs can do: names and where the code is, resolved only inside the worker.

LAYERWISE_EXTRA_ACTIONS and LAYERWISE_EXTRA_REQUESTS ("name=module:function,…") add more, for tests and
plugins.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from layerwise._tool.backends.errors import UsageError

ACTIONS: dict[str, str] = {
    "compare": "layerwise._tool.debugtools.compare.action:compare",
    "locate": "layerwise._tool.debugtools.locate.action:locate",
    "debug_reduce": "layerwise._tool.debugtools.search.driver.action:debug_reduce",
    "debug_bisect": "layerwise._tool.debugtools.search.driver.action:debug_bisect",
    "debug_repeat": "layerwise._tool.debugtools.search.driver.action:debug_repeat",
    "debug_build": "layerwise._tool.debugtools.search.builds.action:debug_build",
    "debug_precision": "layerwise._tool.debugtools.search.precision.action:debug_precision",
    "bench": "layerwise._tool.debugtools.bench.action:bench",
    "lint": "layerwise._tool.debugtools.checks.lint.action:lint",
    "capability": "layerwise._tool.debugtools.engines.capability.action:capability",
    "compatibility": "layerwise._tool.debugtools.checks.compatibility.action:compatibility",
    "convert": "layerwise._tool.debugtools.convert.action:convert",
    "build_engine": "layerwise._tool.debugtools.convert.engine:build",
    "plugins": "layerwise._tool.surgery.plugins.action:plugins",
    "diff": "layerwise._tool.debugtools.diff.action:diff",
    "tensor_view": "layerwise._tool.debugtools.compare.tensor_view:tensor_view",
    "index": "layerwise._tool.surgery.graph.action:action_index",
    "inspect_model": "layerwise._tool.surgery.inspect.action:action_inspect_model",
    "inspect_trt": "layerwise._tool.debugtools.engines.inspect.action:inspect_trt",
    "inspect_data": "layerwise._tool.backends.saved_data.actions:action_inspect_data",
    "data_concat": "layerwise._tool.backends.saved_data.actions:action_data_concat",
    "data_merge": "layerwise._tool.backends.saved_data.actions:action_data_merge",
    "sanitize": "layerwise._tool.surgery.sanitize.action:sanitize",
    "run_shapes": "layerwise._tool.surgery.types.by_running:run_shapes",
    "bundle": "layerwise._tool.debugtools.bundle.action:bundle",
    "triage": "layerwise._tool.debugtools.triage.action:triage",
    "edit": "layerwise._tool.debugtools.edits.action:edit",
    "interactive": "layerwise._tool.backends.jobs.interactive:serve",
}

REQUESTS: dict[str, str] = {
    "weight_statistics": "layerwise._tool.surgery.weights.statistics:answer_weights",
    "edit_types": "layerwise._tool.surgery.history.requests:answer_types",
    "edit_result": "layerwise._tool.surgery.history.requests:answer_result",
    "edit_write": "layerwise._tool.surgery.history.requests:answer_write",
    "edit_script": "layerwise._tool.surgery.history.requests:answer_script",
    "edit_check": "layerwise._tool.surgery.history.requests:answer_check",
    "edit_effect": "layerwise._tool.debugtools.edits.effect:answer_effect",
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
