"""The job action `triage_sanitize`: what onnxruntime's basic optimisations leave of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.model import ModelFile
from backends.onnxrt import optimized_model
from backends.runner import Loadable
from backends.specs import RunnerSpec

if TYPE_CHECKING:
    from backends.jobs.context import JobContext


def sanitize_model(context: "JobContext") -> dict[str, Any]:
    """Write `params["output"]`: the model with constants folded and dead nodes gone. Gives node counts."""
    source, target = Path(context.params["model"]), Path(context.params["output"])
    target.unlink(missing_ok=True)
    spec = RunnerSpec(kind="onnxrt", graph_optimization_level="basic")
    optimized_model(spec, Loadable(path=source), target)
    return {"before": _nodes(source), "after": _nodes(target), "model": str(target)}


def _nodes(path: Path) -> int:
    with ModelFile(path) as file:
        return len(file.structure().graph.node)
