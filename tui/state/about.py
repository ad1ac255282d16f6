"""Which jobs are about a model: the one rule for the app and for `inspect model --visual`."""

import os
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.tui.state.debugging import compare_params

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.tui.state.shared import AppState

COMPARING = ("compare", "locate")
"""Actions whose jobs have rows of layers."""
_OWN = ("compare", "bench")


def comparison_params(spec: "JobSpec") -> dict[str, Any]:
    """The comparison among a job's parameters (of a bench: all of them); empty where there is none."""
    return spec.params if spec.action in _OWN else compare_params(spec.params)


def is_about(spec: "JobSpec", model: Path, actions: Container[str]) -> bool:
    """Whether a job does one of `actions` to the file `model`, by whatever path or link it was named."""
    if spec.action not in actions:
        return False
    named = comparison_params(spec).get("model")
    return bool(named) and os.path.realpath(Path(spec.cwd, str(named))) == os.path.realpath(model)


def newest_of_model(app: "AppState", actions: Container[str]) -> int:
    """The newest job that does one of `actions` to the open model, wherever it was started; 0 if there is none."""
    model = app.session.model
    if model is None:
        return 0
    specs = ((view.id, app.jobs.spec(view)) for view in app.jobs.views)
    return max((job for job, spec in specs if spec is not None and is_about(spec, model, actions)), default=0)
