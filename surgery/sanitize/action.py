"""The job action `sanitize`: cleans up a model and folds its constants, in a process that may crash."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import Spec, read_spec
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.tidy import count_nodes
from layerwise._tool.surgery.sanitize.steps import SanitizeSpec, sanitized
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.wire.pieces import THRESHOLD

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class SanitizeJob(Spec, frozen=True):
    """model and output: paths. external: name of the file for weights next to the output, "" for the default."""

    model: str
    output: str
    what: SanitizeSpec = SanitizeSpec()
    external_data_dir: str | None = None
    ignore_external_data: bool = False
    external: str | None = None
    external_threshold: int = THRESHOLD
    overwrite: bool = False


def sanitize(context: "JobContext") -> dict[str, Any]:
    """Do what `context.params` (a SanitizeJob) says. Result: passed; output; before and after, counts of nodes; bytes.

    UsageError for a request that does not match the model, BadFile for a bad model.
    """
    job = read_spec(context.params, SanitizeJob, "what to do")
    path = Path(job.output)
    with ModelFile(job.model, job.external_data_dir, job.ignore_external_data) as file:
        model = Structure.open(file)
        before = count_nodes(model)
        model = sanitized(model, job.what, lambda level, text: context.log(text, level))
        external = None if job.external is None else Path(job.external or f"{path.name}.data")
        save(model, path, external=external, threshold=job.external_threshold, overwrite=job.overwrite)
    size = path.stat().st_size
    return {"passed": True, "output": job.output, "before": before, "after": count_nodes(model), "bytes": size}
