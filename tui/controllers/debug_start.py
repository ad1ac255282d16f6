"""Starting searches on the comparison in view, and what the user does with one."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backends.errors import LayerwiseError, UsageError
from backends.jobs.spec import JobSpec
from debugtools.bundle.culprits import culprits
from debugtools.bundle.spec import BundleSpec
from debugtools.compare.spec import CompareSpec, MarkSpec
from debugtools.debugger.spec import DebugSpec
from debugtools.locate.spec import LocateSpec
from debugtools.triage.spec import TriageSpec
from tui.cli.debug.locate import locate_line
from tui.cli.line import command_line
from tui.cli.triage import triage_line
from tui.controllers.jobs import JobActions
from tui.controllers.run import RunController, wants_gpu
from tui.presenters.compare_text import compare_title, side_names
from tui.state.debugging import DebugState
from tui.state.questions import Question
from tui.state.shared import AppState

SEARCH_WORDS = ("locate", "reduce", "bisect", "repeat", "precision", "triage")
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
            return f"On: {' against '.join(side_names(self.compare().runners))}"
        except UsageError as error:
            return str(error)

    def compare(self) -> CompareSpec:
        """The two sides to search between. UsageError where there are none."""
        spec = self._app.errors.spec or RunController(self._app).checked.spec
        if spec is None or len(spec.runners) < 2 or spec.runners[0].kind == "saved":
            raise UsageError("two sides are needed: set them up on the Run screen (R), the suspect first")
        return replace(spec, marks=MarkSpec(), observe="auto", statistics=False, **_NOTHING_SAVED)

    async def start(self, search: str, *, by_hand: bool = False, target: str | None = None) -> int:
        """Submit a search and put it on view; the job. target: the tensor that goes wrong, None for the outputs."""
        compare = self.compare()
        action, spec, line = _request(search, compare, by_hand, target)
        waits = by_hand or search == "triage"  # holds no slot and no GPU while it waits
        job = JobSpec(
            action=action, params=msgspec.to_builtins(spec), title=f"{search} {compare_title(compare)}", command=line,
            gpus=0 if waits else wants_gpu(compare), cpus=0 if waits else 1, cwd=self._folder(), source="tui",
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
        return found or str(Path.cwd())

    async def cancel(self, job: int) -> None:
        """Stop a search."""
        await JobActions(self._app).cancel(job)

    async def retry(self, job: int) -> None:
        """Go on with one that has ended."""
        await JobActions(self._app).retry(job)

    def node_of(self, row: dict[str, Any]) -> int:
        """The node of the open model that a row is about, -1 if none."""
        index, name = self._app.session.index, row.get("node")
        if index is None or not isinstance(name, str) or not name:
            return -1
        node = index.find_node(name)
        tensor = index.find_tensor(name) if node < 0 else -1
        return index.producer(tensor) if tensor >= 0 else node

    async def bundle(self, debug: DebugState, row: dict[str, Any], folder: str) -> str:
        """Write a repro bundle of what a search found (of the suspect in `row`); what to tell the user."""
        if debug.compare is None:
            raise UsageError("a bundle needs two sides: the reference gives its golden outputs")
        own = row.get("region")
        nodes = [int(node["i"]) for node in own] if own else culprits(debug.result)
        target = Path(folder).expanduser().absolute() if folder else Path.cwd() / f"bundle-{debug.job}"
        spec = BundleSpec(compare=debug.compare, nodes=nodes, output=str(target))
        job = JobSpec(
            action="bundle", params=msgspec.to_builtins(spec), title=f"bundle {target}",
            command=["layerwise", "debug", "bundle", str(debug.job), "-o", str(target)],
            gpus=wants_gpu(debug.compare), cwd=self._app.workspace.view(debug.job).spec.cwd, source="tui",
        )  # fmt: skip
        number = await self._app.client.submit(job)
        view = await asyncio.wait_for(self._app.client.wait(number), None)
        if view.result is None:
            raise UsageError(f"job {number}: {(view.card or {}).get('summary', view.state)}")
        return f"{target}: {view.result.get('summary', 'written')}"

    def yank_targets(self, debug: DebugState, question: Question | None) -> list[tuple[str, str, str]]:
        """(key, what, text) of what can be copied."""
        targets = []
        view = next((view for view in self._app.jobs.views if view.id == debug.job), None)
        spec = self._app.jobs.spec(view) if view else None
        if spec is not None and spec.command:
            targets.append(("c", "command", shlex.join(spec.command)))
        artifact = question.more.get("artifact") if question else None
        if isinstance(artifact, dict):
            targets += [(str(what)[0], str(what), str(path)) for what, path in artifact.items()]
        path = debug.model_path()
        return [*targets, ("f", "found model", path)] if path else targets


def _request(
    search: str, compare: CompareSpec, by_hand: bool, target: str | None
) -> tuple[str, msgspec.Struct, list[str]]:
    """Action, its parameters, and the command line that does the same."""
    if search == "locate":
        locate = LocateSpec(compare=compare)
        return "locate", locate, locate_line(locate)
    if search == "triage":
        triage = TriageSpec(compare=compare, ask=True)
        return "triage", triage, triage_line(triage)
    line = ["layerwise", "debug", search, *command_line(compare)[2:], *(["--mark", target] if target else [])]
    marked = replace(compare, marks=MarkSpec(names=[target], only=True)) if target else compare
    spec = DebugSpec(compare=marked, interactive=by_hand)
    return f"debug_{search}", spec, [*line, *(["--interactive"] if by_hand else [])]
