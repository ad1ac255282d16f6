"""What Surgery writes and reads: the edited model, its edits as a log or a script, and whether the outputs moved."""

from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.controllers.warm import warm_worker
from layerwise._tool.tui.presenters.bars import size_text
from layerwise._tool.tui.presenters.surgery_status import effect_text, misfit_text


async def write(surgeon: SurgeryController, path: Path, overwrite: bool) -> None:
    """Save the head. UsageError if a file is there already and may not be replaced, or it is the open model."""
    model = surgeon.app.session.model
    if model is not None and path.exists() and path.samefile(model):
        raise UsageError("that is the open model, and its weights are read from it: write to another name")
    params = {**surgeon.place(), "out": str(path), "overwrite": overwrite}
    size = (await warm_worker(surgeon.app).ask("edit_write", params))["size"]
    surgeon.state.saved, surgeon.state.saved_as = surgeon.desk.history.at, path
    surgeon.state.on_change.emit()
    surgeon.remember()
    surgeon.app.say(f"written: {shown(str(path))}, {size_text(size)}; :open {shown(str(path))} shows it", "good")


async def script(surgeon: SurgeryController, path: Path) -> None:
    """Write the edits as an onnx-graphsurgeon script. UsageError if a file is there already."""
    if path.exists():
        raise UsageError(f"{shown(str(path))} is there already: choose another name")
    await warm_worker(surgeon.app).ask("edit_script", {**surgeon.place(), "out": str(path)})
    surgeon.app.say(f"written: {shown(str(path))}, {surgeon.state.edits} edits for onnx-graphsurgeon", "good")


async def log(surgeon: SurgeryController, path: Path) -> None:
    """Write the edits as JSON, to replay them elsewhere. UsageError if a file is there already."""
    count = await surgeon.run(surgeon.desk.write_log, path)
    how = "layerwise surgeon replay makes them elsewhere"
    surgeon.app.say(f"written: {shown(str(path))}, {count} edits; {how}", "good")


async def replay(surgeon: SurgeryController, path: Path) -> None:
    """Show what the edits of a log make of the head; those that do not fit are named. BadFile, UsageError."""
    edits = await surgeon.run(surgeon.desk.read_log, path)
    misfits = await surgeon.attempt_fitting(edits)
    surgeon.app.say("")
    if misfits:
        lost = f"{len(misfits)} of {len(edits)} edits do not fit and are left out: "
        surgeon.app.say(lost + misfit_text(*misfits[0]), "warn")


async def effect(surgeon: SurgeryController) -> str:
    """Run the file and the head on onnxruntime's CPU provider with one feed; says by how much outputs moved."""
    answer = await warm_worker(surgeon.app).ask(
        "edit_effect", {**surgeon.place(), "at": 0, "to": surgeon.place()["at"]}
    )
    low = any(edit.__struct_config__.tag == "convert-precision" for edit in surgeon.desk.edits())
    return effect_text(answer) + ("; onnxruntime's CPU computes FP16 in FP32" if low else "")
