"""The open model: its index, made by a job if there is none; its warm worker; an engine, which a job describes."""

import asyncio
import os
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import trt_gpus
from layerwise._tool.backends.specs import ENGINE_SUFFIXES
from layerwise._tool.backends.text import one_line, shown
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.tui.state.shared import AppState


async def open_model(state: AppState) -> None:
    """Give the session its index; progress and failure are told through the state."""
    model = state.session.model
    if model is None:
        return
    try:
        if is_engine(model):
            job = await state.client.submit(await asyncio.to_thread(engine_job, str(model), model.name))
            state.say(f"an engine has no graph to browse: job {job} says what is in it (3 shows it)")
            return
        index = await graph_index(state, model)
    except LayerwiseError as error:
        state.session.set_problem(str(error))
        state.say(str(error), "bad")
        return
    state.session.set_opening("")
    state.session.set_index(index)


async def graph_index(state: AppState, model: Path) -> GraphIndex:
    """The index of any model, made by a job if there is none. BadFile, or LayerwiseError with what the job said."""
    folder = index_folder(state.workspace.cache, model)
    if has_index(folder):
        try:
            return GraphIndex.open(folder)
        except LayerwiseError:
            pass  # damaged, or of another version: the job makes a new one
    result = await _index_job(state, model)
    state.session.set_opening("")
    return GraphIndex.open(Path(result["folder"]))


async def _index_job(state: AppState, model: Path) -> dict[str, Any]:
    """Run the job and return its result. Raises LayerwiseError with what the job said."""
    state.session.set_opening("indexing: starting")
    spec = JobSpec(
        action="index", params={"path": str(model), "cache": str(state.workspace.cache)}, title=f"index {model}",
        command=["layerwise", str(model)], cpus=0, source="tui",
    )  # fmt: skip
    job = await state.client.submit(spec)
    problem = f"job {job} ended without a result"
    result: dict[str, Any] | None = None
    async for event in state.client.events(job):
        if event["type"] == "progress":
            state.session.set_opening(f"{event.get('text') or 'indexing'}: {event.get('done')} of {event.get('total')}")
        elif event["type"] == "result":
            result = event["data"]
        elif event["type"] == "card":
            problem = shown(one_line(str(event.get("summary") or problem)), 1000)
    if result is None:
        raise LayerwiseError(problem)
    return result


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


async def read_modules(state: AppState, warm: "WarmWorker") -> None:
    """Have a worker read where the nodes come from, if the model's exporter noted it and nobody has read it before."""
    index, model = state.session.index, state.session.model
    if index is None or model is None or not index.meta.get("noted"):
        return
    if index.modules() is None:
        with state.telling():
            await warm.ask("modules", {"path": str(model), "folder": str(index.folder)})
    state.session.on_modules.emit()


class WarmWorker:
    """Starts the worker at the first request, and again after a crash or its idle end."""

    def __init__(self, client: JobClient, model: str) -> None:
        self._client = client
        self._model = model
        self._job: int | None = None
        self._starting = asyncio.Lock()

    async def ask(self, request: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises LayerwiseError with the worker's message."""
        job = await asyncio.shield(self._alive())  # who gives up must not leave a worker that nobody knows
        return await self._client.ask(job, request, params)

    async def _alive(self) -> int:
        async with self._starting:
            if self._job is None or (await self._client.view(self._job)).final:
                self._job = await self._client.submit(
                    JobSpec(
                        action="interactive", title=f"interactive: {self._model}", cpus=0, source="tui",
                        params={"model": self._model, "beside": os.getpid()}, command=["layerwise", self._model],
                    )
                )  # fmt: skip
            return self._job

    async def stop(self) -> None:
        """End the worker, if it lives."""
        if self._job is not None:
            try:
                await self._client.cancel(self._job)
            except LayerwiseError:
                self._job = None
