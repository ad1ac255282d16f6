"""Starting a lens, and proving a choice: a job that measures it on the switchboard, and runs the mixed model."""

import asyncio

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools.compare.spec import MarkSpec, unsaved
from layerwise._tool.debugtools.search.lens.rows import EffectRow, LensResult
from layerwise._tool.debugtools.search.lens.spec import LensSpec, Rounding
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.controllers.run import RunController, wants_gpu
from layerwise._tool.tui.state.shared import AppState


async def start(app: AppState, form: str) -> int:
    """Submit a lens on the model of the comparison on view, or of the Run form, and put it on view; its number.
    UsageError where there is none.
    """
    asked = app.errors.spec or RunController(app).checked.spec
    if asked is None or not any(runner.kind == "onnxrt" for runner in asked.runners):
        raise UsageError("a side on onnxruntime is needed: set it up on the Run screen (R)")
    runner = next(runner for runner in asked.runners if runner.kind == "onnxrt")
    model = runner.model or asked.model
    compare = msgspec.structs.replace(
        unsaved(asked), model=model, runners=[msgspec.structs.replace(runner, model=None)], marks=MarkSpec(),
        observe="auto", statistics=False, truth=False,
    )  # fmt: skip
    spec = LensSpec(compare=compare, rounding=Rounding(to=form))  # type: ignore[arg-type]
    line = ["layerwise", "debug", "precision", *command_line(compare)[2:], "--to", form]
    job = JobSpec(
        action="debug_lens", params=msgspec.to_builtins(spec), title=f"{form} node by node", command=line,
        gpus=await asyncio.to_thread(wants_gpu, compare), cwd=str(current_folder()), source="tui",
    )  # fmt: skip
    number = await app.client.submit(job)
    app.session.set_debug_job(number)
    return number


async def prove(app: AppState) -> int:
    """Submit the job for the lens on view; its number. UsageError if that is no lens."""
    debug = app.debug
    try:
        spec = msgspec.convert(debug.params, LensSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"this job is no lens: {error}") from None
    before = app.workspace.view(debug.job).spec
    kept = [row.node for row in debug.rows if isinstance(row, EffectRow) and row.i in debug.in_fp32]
    names = [*spec.keep, *kept]
    proof = msgspec.structs.replace(spec, keep=names, prove=True, output=None, lists=None)
    words = [*_without(before.command, "--keep", "-o", "--output", "--lists"), "--prove"]
    job = JobSpec(
        action="debug_lens", params=msgspec.to_builtins(proof), title=f"prove {len(names)} nodes in FP32",
        command=[*words, "--keep", *names] if names else words, gpus=before.gpus, cwd=before.cwd, source="tui",
    )  # fmt: skip
    return await app.client.submit(job)


async def outcome(app: AppState, job: int) -> str:
    """What a job has found, once it is over. UsageError where it found nothing."""
    view = await app.client.wait(job)
    if view.result is None:
        raise UsageError(f"job {job}: {(view.card or {}).get('summary', view.state)}")
    found = msgspec.convert(view.result, LensResult)
    errors = ("not finite" if error is None else f"{error:.3g}" for error in (found.error, found.proved))
    return "measured {}, as a mixed model {}".format(*errors) + ("" if found.real else " (FP32 nodes that round)")


def _without(words: list[str], *options: str) -> list[str]:
    """A command line without some options and their values."""
    left: list[str] = []
    dropping = False
    for word in words:
        dropping = word in options or (dropping and not word.startswith("-"))
        if not dropping:
            left.append(word)
    return left
