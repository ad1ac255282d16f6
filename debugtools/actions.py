"""The actions of jobs and the requests to interactive workers: names and where the code is."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.builds import OF_PROCESS

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.backends.runner import Loadable

ACTIONS = {
    "compare": "layerwise._tool.debugtools.compare.action:compare",
    "locate": "layerwise._tool.debugtools.locate.action:locate",
    "debug_reduce": "layerwise._tool.debugtools.search.driver.action:debug_reduce",
    "debug_bisect": "layerwise._tool.debugtools.search.driver.action:debug_bisect",
    "debug_repeat": "layerwise._tool.debugtools.search.driver.action:debug_repeat",
    "debug_build": "layerwise._tool.debugtools.search.builds.run:debug_build",
    "debug_layers": "layerwise._tool.debugtools.search.builds.layers:debug_layers",
    "debug_precision": "layerwise._tool.debugtools.search.precision.run:debug_precision",
    "baseline": "layerwise._tool.debugtools.baseline.action:baseline",
    "debug_lens": "layerwise._tool.debugtools.search.lens.run:debug_lens",
    "bench": "layerwise._tool.debugtools.bench.run:bench",
    "lint": "layerwise._tool.debugtools.checks.lint.linter:lint",
    "capability": "layerwise._tool.debugtools.engines.capability.action:capability",
    "compatibility": "layerwise._tool.debugtools.checks.compatibility.action:compatibility",
    "invariants": "layerwise._tool.debugtools.checks.invariants.action:invariants",
    "convert": "layerwise._tool.debugtools.convert.action:convert",
    "build_engine": "layerwise._tool.debugtools.convert.engine:build",
    "autotune": "layerwise._tool.debugtools.autotune.action:autotune",
    "plugins": "layerwise._tool.surgery.plugins.action:plugins",
    "diff": "layerwise._tool.debugtools.diff.action:diff",
    "tensor_view": "layerwise._tool.debugtools.compare.tensor_view:tensor_view",
    "index": "layerwise._tool.surgery.graph.build:action_index",
    "inspect_model": "layerwise._tool.surgery.inspect.document:action_inspect_model",
    "inspect_trt": "layerwise._tool.debugtools.engines.inspect.action:inspect_trt",
    "inspect_data": "layerwise._tool.backends.saved_data.actions:action_inspect_data",
    "data_concat": "layerwise._tool.backends.saved_data.actions:action_data_concat",
    "data_merge": "layerwise._tool.backends.saved_data.actions:action_data_merge",
    "sanitize": "layerwise._tool.surgery.sanitize.action:sanitize",
    "run_shapes": "layerwise._tool.surgery.types.by_running:run_shapes",
    "bundle": "layerwise._tool.debugtools.bundle.action:bundle",
    "triage": "layerwise._tool.debugtools.triage.action:triage",
    "matrix": "layerwise._tool.debugtools.matrix.action:matrix",
    "edit": "layerwise._tool.debugtools.edits.action:edit",
    "interactive": "layerwise._tool.debugtools.actions:interactive",
}
REQUESTS = {
    "weight_statistics": "layerwise._tool.surgery.weights.statistics:answer_weights",
    "modules": "layerwise._tool.surgery.graph.build_modules:answer_modules",
    "input_plan": "layerwise._tool.surgery.feeds.requests:answer_plan",
    "edit_types": "layerwise._tool.surgery.history.requests:answer_types",
    "edit_result": "layerwise._tool.surgery.history.requests:answer_result",
    "edit_write": "layerwise._tool.surgery.history.requests:answer_write",
    "edit_script": "layerwise._tool.surgery.history.requests:answer_script",
    "edit_check": "layerwise._tool.surgery.history.requests:answer_check",
    "edit_effect": "layerwise._tool.debugtools.edits.effect:answer_effect",
}
AHEAD = (
    "layerwise._tool.backends.onnxrt.session", "layerwise._tool.debugtools.compare.action",
    "layerwise._tool.debugtools.compare.sides.setup", "layerwise._tool.debugtools.compare.run",
    "layerwise._tool.surgery.cut.segments", "layerwise._tool.backends.onnxrt.runner",
    "layerwise._tool.surgery.cut.sizes",
)  # fmt: skip
"""What most jobs import, what a session takes to open first: it opens while they import the rest."""


def hand_over() -> None:
    """Have builds of engines write reduced precision into graphs."""
    OF_PROCESS.reduced = _reduced


def _reduced(*given: Any) -> "AbstractContextManager[Loadable]":
    from layerwise._tool.debugtools.convert.engine_precision import reduced

    return reduced(*given)


def interactive(context: "JobContext") -> dict[str, Any]:
    """Answer requests, as `serve` says."""
    from layerwise._tool.backends.jobs.actions import serve

    return serve(context, REQUESTS)
