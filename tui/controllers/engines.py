"""TensorRT engines in the app: which a job has, and the job that says what is in one."""

from pathlib import Path

from layerwise._tool.backends.filesystem.files import current_folder
from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.trt.options import ENGINE_SUFFIXES


def is_engine(path: Path) -> bool:
    """Whether a file is named as engines are."""
    return path.suffix.lower() in ENGINE_SUFFIXES


def engines_of(view: JobView) -> list[tuple[str, str]]:
    """(runner, path) of the engines that a job built or ran, each once."""
    rows = rows_of(view.folder, "engines")
    found = {str(row.get("path")): str(row.get("runner")) for row in rows if isinstance(row, dict)}
    built = (view.result or {}).get("path")
    if not found and isinstance(built, str) and is_engine(Path(built)):
        found = {built: "the engine built"}
    return [(runner, path) for path, runner in found.items()]


def engine_job(path: str, of: str, model: str = "", cwd: str = "") -> JobSpec:
    """The job whose journal describes an engine, layer by layer, with the nodes of an ONNX model if one is named.

    It may ask the driver for GPUs: call it off the screen's thread.
    """
    named = model.lower().endswith(".onnx")
    words = [path, "--show", "layers", *(["--nodes-of", model] if named else [])]
    return JobSpec(
        action="inspect_trt", params={"engine": path, "show": ["layers"], **({"nodes_of": model} if named else {})},
        title=f"what is in {of}", command=["layerwise", "inspect", "model", *words], gpus=trt_gpus(),
        cwd=cwd or str(current_folder()), source="tui",
    )  # fmt: skip
