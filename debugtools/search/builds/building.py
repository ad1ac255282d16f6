"""Where an engine is built: in this process, or in a job of its own that gives the GPU back when it is done."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import visible_gpus
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.trt.building.builder import build_engine
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.convert.engine import EngineSpec, loadable

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Building = Callable[[TrtOptions], tuple[bytes, list[str]]]
"""Builds with these options: the engine, and what a user should know. LayerwiseError where that cannot be."""


def here(context: "JobContext", spec: EngineSpec) -> Building:
    """Build in this process."""
    model = loadable(spec)

    def build(options: TrtOptions) -> tuple[bytes, list[str]]:
        built = build_engine(
            model, options, progress=lambda done, total, text: context.progress(done, total, "steps", text)
        )
        return built.data, built.told

    return build


def apart(context: "JobContext", spec: EngineSpec) -> Building:
    """Build in a job of its own: this one holds no GPU while a person is asked."""
    workspace, target = Workspace(context.folder.parent.parent), context.artifacts / "built.engine"

    def build(options: TrtOptions) -> tuple[bytes, list[str]]:
        told: list[str] = []
        params = msgspec.to_builtins(msgspec.structs.replace(spec, options=options, output=str(target), overwrite=True))
        job = JobSpec(
            action="build_engine", params=params, title=f"build of job {context.folder.name}",
            command=list(context.raw.get("command", [])), cwd=str(context.raw.get("cwd", "")),
            gpus=int(bool(visible_gpus(os.environ))),
        )  # fmt: skip
        view = run_inline(job, _listener(context, told), workspace, ACTIONS)
        if view.state != "done":
            card = view.card or {}
            kind = UsageError if card.get("exit_code") == UsageError.exit_code else LayerwiseError
            raise kind(str(card.get("summary") or view.state))
        data = target.read_bytes()
        target.unlink()
        return data, told

    return build


def _listener(context: "JobContext", told: list[str]) -> Callable[[Event], None]:
    """Pass a build's progress on, and keep its notes."""

    def listen(event: Event) -> None:
        if event["type"] == "progress":
            context.progress(event["done"] or 0, event["total"], str(event.get("unit", "")), str(event.get("text", "")))
        elif event["type"] == "warning":
            told.append(str(event["text"]))

    return listen
