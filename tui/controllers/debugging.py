"""Searches: starting one on the comparison on view, following the one on the Debug screen, and using its results."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.places import current_folder, user_path
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.shell import TITLE, shell_line
from layerwise._tool.debugtools.bundle.spec import BundleSpec
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec
from layerwise._tool.debugtools.search.rows import Node
from layerwise._tool.debugtools.search.spec import ENGINE, BuildsSpec, DebugSpec, PrecisionSpec
from layerwise._tool.debugtools.triage.spec import TriageSpec
from layerwise._tool.tui.cli.check.invariants import invariants_line
from layerwise._tool.tui.cli.debug.locate import locate_line
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.cli.triage import triage_line
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.controllers.invariants import invariants_spec
from layerwise._tool.tui.controllers.run import RunController, wants_gpu
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.presenters.compare_text import compare_title, side_name, side_names
from layerwise._tool.tui.state.debug_rows import Shown, ShownStep, ShownSuspect
from layerwise._tool.tui.state.debugging import SEARCHES, DebugState
from layerwise._tool.tui.state.jobs import other_model
from layerwise._tool.tui.state.questions import Question
from layerwise._tool.tui.state.shared import AppState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex


class DebugController(Follower):
    """Keeps the app's DebugState up to date with the search that the session has on view."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state: DebugState = app.debug
        self.listen(app.session.on_debug_job.subscribe(self._job_changed), app.jobs.on_change.subscribe(self._look))
        self._job_changed()

    def _look(self) -> None:
        if self.goes_on(self.state.job):
            self._job_changed()

    def _job_changed(self) -> None:
        self.stop()
        self.state.open(0, "", {})
        job = self._app.session.debug_job
        if job is not None:
            self._open(job)
        self.state.on_change.emit()

    def _open(self, job: int) -> None:
        try:
            view = self._app.workspace.view(job)
            spec, attempt = view.spec, view.attempt
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")
            return
        if spec.action in SEARCHES:
            self.state.open(job, spec.action, spec.params)
            self.state.other = other_model(spec, self._app.session.model)
            self.follow(job, attempt)

    def take(self, event: Event) -> None:
        self.state.take(event)

    def show(self) -> None:
        self.state.on_change.emit()


ARTIFACT = "layerwise_debug.onnx"
SEARCH_WORDS = ("locate", "reduce", "bisect", "repeat", "build", "precision", "triage", "invariants")
_NOTHING_SAVED: dict[str, Any] = {
    "save_inputs": None, "save_input_blob": None, "save_outputs": None, "save_accuracy": None, "save_heatmaps": None,
    "save_error_plots": None, "save_align": None,
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

    def _asked(self) -> CompareSpec | None:
        """The comparison on view, or that of the Run form where there is none."""
        return self._app.errors.spec or RunController(self._app).checked.spec

    def compare(self, search: str = "") -> CompareSpec:
        """The two sides to search between. UsageError where there are none."""
        spec = self._asked()
        if spec is None or len(spec.runners) < 2 or spec.runners[0].kind == "saved":
            raise UsageError("two sides are needed: set them up on the Run screen (R), the suspect first")
        truth = spec.truth and search == "locate"
        return replace(spec, marks=MarkSpec(), observe="auto", statistics=False, truth=truth, **_NOTHING_SAVED)

    def on_builds(self) -> bool:
        """Whether a search would start on an engine that is built, which may come out another one each time."""
        try:
            suspect = self.compare().runners[0]
        except UsageError:
            return False
        return suspect.kind == "trt" and not suspect.options.get("engine")

    async def start(self, search: str, *, by_hand: bool = False, target: str | None = None) -> int:
        """Submit a search and put it on view; the job. target: the tensor that goes wrong, None for the outputs."""
        if search == "invariants":
            return await self._check_invariants()
        compare = self.compare(search)
        action, spec, line = search_request(search, compare, by_hand, target)
        cpus = 0 if by_hand or search == "triage" else 1  # what waits for a person holds no slot
        gpus = 0 if search == "triage" else await asyncio.to_thread(wants_gpu, compare)  # its steps lease their own
        job = JobSpec(
            action=action, params=msgspec.to_builtins(spec), title=f"{search} {compare_title(compare)}", command=line,
            gpus=gpus, cpus=cpus, cwd=self._folder(), source="tui",
        )  # fmt: skip
        return await self._submit(job)

    async def _check_invariants(self) -> int:
        spec = invariants_spec(self._app, self._asked())
        gpus = await asyncio.to_thread(gpus_for, [spec.runner])
        title = f"invariants of {Path(spec.model).name} on {side_name(spec.runner)}"
        job = JobSpec(
            action="invariants", params=msgspec.to_builtins(spec), title=title, command=invariants_line(spec),
            gpus=gpus, cwd=self._folder(), source="tui",
        )  # fmt: skip
        return await self._submit(job)

    async def _submit(self, job: JobSpec) -> int:
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


class DebugResults:
    """Bundles are jobs; each method that waits for one gives what to tell the user. written: the last one's folder."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self.written = ""

    async def bundle(self, debug: DebugState, nodes: list[int], iteration: int, folder: str) -> str:
        """Write a repro bundle of these nodes of a search's suspect."""
        if debug.compare is None:
            raise UsageError("a bundle needs two sides: the reference gives its golden outputs")
        of_row = f"-{nodes[0]}" if debug.search == "locate" else ""
        name = folder or f"bundle-{debug.job}{of_row}"
        return await self.bundle_of(debug.job, debug.compare, nodes, iteration, name)

    async def bundle_of(self, job: int, compare: CompareSpec, nodes: list[int], iteration: int, folder: str) -> str:
        """Write a repro bundle of nodes of the suspect that `job` is about."""
        target = current_folder() / user_path(folder)
        spec = BundleSpec(compare=compare, nodes=nodes, iteration=iteration, output=str(target))
        which = [*(["--nodes", *map(str, nodes)] if nodes else []),
                 *(["--iteration", str(iteration)] if iteration else [])]  # fmt: skip
        bundle = JobSpec(
            action="bundle", params=msgspec.to_builtins(spec), title=shell_line(["bundle", target], TITLE),
            command=["layerwise", "debug", "bundle", str(job), "-o", str(target), *which],
            gpus=await asyncio.to_thread(wants_gpu, compare), cwd=self._app.workspace.view(job).spec.cwd, source="tui",
        )  # fmt: skip
        number = await self._app.client.submit(bundle)
        self._app.say(f"job {number}: bundle started", job=number)
        view = await self._app.client.wait(number)
        if view.result is None:
            raise UsageError(f"job {number}: {(view.card or {}).get('summary', view.state)}")
        self.written = str(target)
        return f"{view.result.get('summary', 'bundle written')}: {_from_here(target)}"

    def yank_targets(self, debug: DebugState, question: Question | None) -> list[Copy]:
        """What can be copied."""
        targets = []
        view = self._app.jobs.view(debug.job)
        spec = self._app.jobs.spec(view) if view else None
        if spec is not None and spec.command:
            targets.append(Copy("c", "command", tuple(spec.command)))
        files = [*(question.beside.artifact if question else {}).items()]
        files += [*(debug.result.files if debug.result else {}).items()]
        targets += [Copy(what[:1], what, (path,)) for what, path in files]
        path = debug.model_path()
        targets += [Copy("f", "found model", (path,))] if path else []
        return [*targets, Copy("b", "bundle", (self.written,))] if self.written else targets


def _from_here(path: Path) -> str:
    """A path as short as it can be told."""
    here = current_folder()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def suspect_sets(debug: DebugState, row: Shown | None) -> list[tuple[str, list[int]]]:
    """(name, nodes) of each set of nodes that a search speaks against; of a suspect in `row` only that one."""
    if debug.search == "precision":  # its nodes are right, but not to be lowered
        return []
    if debug.search == "locate":
        suspects, sets = [row] if isinstance(row, ShownSuspect) else [], list[list[Node]]()
    else:
        suspects = debug.result.suspects if debug.result else []
        sets = [entry.nodes for entry in debug.found]
    sets += [suspect.region or [suspect] for suspect in suspects]
    known = [[(node.i, node) for node in nodes if node.i is not None] for nodes in sets]
    return [(_named(nodes), [i for i, _ in nodes]) for nodes in known if nodes]


def _named(nodes: list[tuple[int, Node]]) -> str:
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    return ", ".join(f"#{i} {node.op} {node.node}" for i, node in nodes[:3]) + more


def node_of(index: "GraphIndex | None", row: Shown | None) -> int:
    """The node of the open model that a row is about, -1 if none."""
    if isinstance(row, RelationRow):
        name = (row.where.node or row.where.tensor) if row.where else None
    else:
        name = None if row is None or isinstance(row, ShownStep) else row.node
    if index is None or not name:
        return -1
    node = index.find_node(name)
    tensor = index.find_tensor(name) if node < 0 else -1
    return index.producer(tensor) if tensor >= 0 else node
