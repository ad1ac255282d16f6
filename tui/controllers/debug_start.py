"""Starting searches on the comparison on view."""

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import current_folder
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.spec import ENGINE, BuildsSpec, DebugSpec, PrecisionSpec
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.tui.cli.debug.locate import locate_line
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.triage import triage_line
from layerwise._tool.tui.controllers.run import RunController, wants_gpu
from layerwise._tool.tui.presenters.compare_text import compare_title, side_names
from layerwise._tool.tui.state.shared import AppState

ARTIFACT = "layerwise_debug.onnx"
SEARCH_WORDS = ("locate", "reduce", "bisect", "repeat", "build", "precision", "triage")
_NOTHING_SAVED: dict[str, Any] = {
    "save_inputs": None, "save_input_blob": None, "save_outputs": None, "save_accuracy": None, "save_heatmaps": None,
    "save_error_plots": None,
}  # fmt: skip


class DebugStarter:
    """Makes jobs out of the comparison on view, or of the Run form where there is none."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def ready(self) -> str:
        """On what a search would start, or why none can."""
        try:
            return f"On: {' against '.join(side_names(self.compare().runners))} (R sets up others)"
        except UsageError as error:
            return str(error)

    def compare(self) -> CompareSpec:
        """The two sides to search between. UsageError where there are none."""
        spec = self._app.errors.spec or RunController(self._app).checked.spec
        if spec is None or len(spec.runners) < 2 or spec.runners[0].kind == "saved":
            raise UsageError("two sides are needed: set them up on the Run screen (R), the suspect first")
        return replace(spec, marks=MarkSpec(), observe="auto", statistics=False, **_NOTHING_SAVED)

    def on_builds(self) -> bool:
        """Whether a search would start on an engine that is built, which may come out another one each time."""
        try:
            suspect = self.compare().runners[0]
        except UsageError:
            return False
        return suspect.kind == "trt" and not suspect.options.get("engine")

    async def start(self, search: str, *, by_hand: bool = False, target: str | None = None) -> int:
        """Submit a search and put it on view; the job. target: the tensor that goes wrong, None for the outputs."""
        compare = self.compare()
        action, spec, line = search_request(search, compare, by_hand, target)
        cpus = 0 if by_hand or search == "triage" else 1  # what waits for a person holds no slot
        gpus = 0 if search == "triage" else await asyncio.to_thread(wants_gpu, compare)  # its steps lease their own
        job = JobSpec(
            action=action, params=msgspec.to_builtins(spec), title=f"{search} {compare_title(compare)}", command=line,
            gpus=gpus, cpus=cpus, cwd=self._folder(), source="tui",
        )  # fmt: skip
        number = await self._app.client.submit(job)
        self._app.session.set_debug_job(number)
        return number

    def _folder(self) -> str:
        """Where the paths of the comparison on view are meant from."""
        job = self._app.session.compare_job if self._app.errors.spec else None
        try:
            found = self._app.workspace.view(job).spec.cwd if job else ""
        except LayerwiseError:
            found = ""
        return found or str(current_folder())


def search_request(
    search: str, compare: CompareSpec, by_hand: bool, target: str | None
) -> tuple[str, msgspec.Struct, list[str]]:
    """Action, its parameters, and the command line that does the same."""
    if search == "locate":
        locate = LocateSpec(compare=compare)
        return "locate", locate, locate_line(locate)
    if search == "triage":
        triage = TriageSpec(compare=compare, ask=True)
        return "triage", triage, triage_line(triage)
    if search == "build":
        return _builds(compare)
    if search == "precision":
        low = of_reference(compare)
        spec = PrecisionSpec(search=DebugSpec(compare=low))
        return "debug_precision", spec, ["layerwise", "debug", search, *command_line(low)[2:]]
    line = ["layerwise", "debug", search, *command_line(compare)[2:], *(["--mark", target] if target else [])]
    marked = replace(compare, marks=MarkSpec(names=[target], only=True)) if target else compare
    if by_hand:
        line += ["--interactive", "--iter-artifact", ARTIFACT]
        return f"debug_{search}", DebugSpec(compare=marked, interactive=True, artifact=ARTIFACT), line
    return f"debug_{search}", DebugSpec(compare=marked), line


def _builds(compare: CompareSpec) -> tuple[str, BuildsSpec, list[str]]:
    """The suspect's engine built again and again, until it is known how often that fails, and by which tactics."""
    if compare.runners[0].kind != "trt":
        raise UsageError("build: the first side must be TensorRT, whose engine is built again and again")
    spec = BuildsSpec(search=DebugSpec(compare=compare, artifact=ENGINE), narrow=True)
    return "debug_build", spec, ["layerwise", "debug", "build", *command_line(compare)[2:], "--narrow"]


def of_reference(compare: CompareSpec) -> CompareSpec:
    """The same sides, both on the reference's model where it has its own: that one is to be lowered anew."""
    suspect, reference, *_ = compare.runners
    if reference.model is None:
        return compare
    return replace(compare, model=reference.model, runners=[replace(side, model=None) for side in (suspect, reference)])
