"""The job action `edit`: applies edits to a model file, checks, runs on request, saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import onnx

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.specs import FeedSpec, Spec, read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.edits.rows import MisfitRow, OutputRow, ProblemRow
from layerwise._tool.surgery.edits import Edit, EditError, edit_from
from layerwise._tool.surgery.history.soundness import edit_problems, problems
from layerwise._tool.surgery.history.tree import edits_to_json, read_edits
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.script.export import export_script
from layerwise._tool.surgery.types.incremental import settled
from layerwise._tool.surgery.wire.pieces import THRESHOLD

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class EditJob(Spec, frozen=True):
    """What to do. model: None starts from an empty model of `new_opset`. edits: as `surgery.edits`; an item {"file":
    path} stands for those in a file. output: None only checks.

    skip_misfits: skip edits that do not fit. keep_broken: save an invalid result. tried: run before and after. script,
    log: files for the edits that were made, as an onnx-graphsurgeon script and as JSON.
    """

    model: str | None = None
    new_opset: int = 17
    edits: list[dict[str, Any]] = []
    output: str | None = None
    external_data_dir: str | None = None
    ignore_external_data: bool = False
    external: str | None = None
    external_each: bool = False
    external_threshold: int = THRESHOLD
    overwrite: bool = False
    skip_misfits: bool = False
    keep_broken: bool = False
    tried: bool = False
    feeds: FeedSpec = FeedSpec()
    script: str | None = None
    log: str | None = None


def edit(context: "JobContext") -> dict[str, Any]:
    """Apply what `context.params` (an EditJob) describes.

    The rows are those of `debugtools.edits.rows`. Result: passed; output; edits; saved.
    """
    job = read_spec(context.params, EditJob, "what to do")
    edits = _edits(job.edits)
    if job.model is None:
        return _edited(context, job, empty(job.new_opset), edits)
    with ModelFile(job.model, job.external_data_dir, job.ignore_external_data) as file:
        return _edited(context, job, Structure.open(file), edits)


def empty(opset: int) -> Structure:
    """Return a model without nodes, as a start."""
    imports = [onnx.helper.make_opsetid("", opset)]
    version = onnx.helper.find_min_ir_version_for(imports, True)
    return Structure.from_proto(
        onnx.ModelProto(ir_version=version, opset_import=imports, graph=onnx.GraphProto(name="graph"))
    )


def _edits(items: list[dict[str, Any]]) -> list[Edit]:
    edits: list[Edit] = []
    for item in items:
        edits += read_edits(Path(item["file"])) if item.keys() == {"file"} else [edit_from(item)]
    if not edits:
        raise UsageError("there is no edit to make")
    return edits


def _edited(context: "JobContext", job: EditJob, before: Structure, edits: list[Edit]) -> dict[str, Any]:
    steps = _steps(context, job, before, edits)
    after = settled(before, steps[-1][1]) if steps else before
    found = edit_problems(before, after) if job.model is not None else problems(after)
    for problem in found:
        context.row("problems", ProblemRow(problem.node, problem.message))
    passed = (not found or job.keep_broken) and len(steps) == len(edits)
    if job.tried and not found:
        _try(context, job, before, after)
    saved = bool(job.output and (not found or job.keep_broken))
    if saved and job.output:
        path = Path(job.output)
        external = None if job.external is None else Path(job.external or f"{path.name}.data")
        save(after, path, external=external, each=job.external_each, threshold=job.external_threshold,
             overwrite=job.overwrite)  # fmt: skip
    if job.script:
        export_script(before, steps, Path(job.script), is_new=job.model is None)
    if job.log:
        atomic_write(job.log, edits_to_json([made for made, _ in steps]))
    return {"passed": passed, "output": job.output, "saved": saved, "edits": len(steps)}


def _steps(
    context: "JobContext", job: EditJob, structure: Structure, edits: list[Edit]
) -> list[tuple[Edit, Structure]]:
    """Return the edits that fit, each with its result. EditError for one that does not fit and may not be skipped."""
    steps: list[tuple[Edit, Structure]] = []
    for made in edits:
        try:
            structure = made.apply(structure)
        except EditError as error:
            if not job.skip_misfits:
                raise
            context.row("misfits", MisfitRow(made.describe(), shown(error.reason, 400)))
            continue
        context.log(made.describe(), "info")
        steps.append((made, structure))
    return steps


def _try(context: "JobContext", job: EditJob, before: Structure, after: Structure) -> None:
    from layerwise._tool.debugtools.edits.effect import effect_of
    from layerwise._tool.surgery.feeds.planned import planned

    feeds = planned(job.feeds, before.proto, context.warn, context.log, context.row)
    effect = effect_of(before, after, feeds, warn=context.warn)
    for moved in effect.outputs:
        context.row("outputs", msgspec.convert(moved, OutputRow, from_attributes=True))
    for name in effect.gone:
        context.row("outputs", OutputRow(name, note="no output any more"))
    for name in effect.new:
        context.row("outputs", OutputRow(name, note="a new output"))
    if effect.nothing:
        context.log("nothing was compared: no output that both models give has an element", "error")
