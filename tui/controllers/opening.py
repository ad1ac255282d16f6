"""Opening the model: map its index, after a job has built it if there is none."""

import asyncio
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.cache import has_index, index_folder
from layerwise._tool.tui.controllers.engines import engine_job, is_engine
from layerwise._tool.tui.state.shared import AppState


async def open_model(state: AppState) -> None:
    """Give the session its index; progress and failure are told through the state."""
    model = state.session.model
    if model is None:
        state.say("no model: start with `layerwise MODEL.onnx`", "warn")
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
            problem = shown(str(event.get("summary") or problem), 1000)
    if result is None:
        raise LayerwiseError(problem)
    return result
