"""Following the newest bench of the open model, starting another, and which node a layer is."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.shell import TITLE, shell_line, shell_words
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.tui.cli.bench.line import command_line
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.controllers.run import wants_gpu
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.state.jobs import other_model
from layerwise._tool.tui.state.perf import PerfState
from layerwise._tool.tui.state.session import NO_MODEL
from layerwise._tool.tui.state.shared import AppState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

TIMED = ("onnxrt", "trt")


class PerfController(Follower):
    """Keeps the app's PerfState up to date with a bench: the one that was asked for, else the newest of the model."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state: PerfState = app.perf
        self.listen(app.jobs.on_change.subscribe(self._look), self.state.on_asked.subscribe(self._look))

    def _look(self) -> None:
        job = self.state.asked or self._app.jobs.newest(self._app.session.model, ("bench",))
        if job and (job != self.state.job or self.goes_on(job)):
            self._open(job)

    def _open(self, job: int) -> None:
        self.stop()
        try:
            asked = self._app.workspace.view(job).spec
            spec = msgspec.convert(asked.params, BenchSpec)
        except (LayerwiseError, msgspec.ValidationError) as error:
            self._app.say(f"job {job}: {in_words(error)}", "bad")
            self.state.asked = None if self.state.asked == job else self.state.asked
            return
        self.state.open(job, spec)
        self.state.other = other_model(asked, self._app.session.model)
        self.follow(job, self._app.jobs.attempt(job))
        self._soon.touch()

    def take(self, event: Event) -> None:
        self.state.take(event)

    def show(self) -> None:
        self.state.refresh()
        self.state.on_change.emit()


class BenchStarter:
    """Makes and submits benches of the open model."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def spec(self, words: str = "") -> BenchSpec:
        """The bench that `words` (options of the command line) ask for; without any, the one on view again, else the
        first runner of the comparison on view that has layers, else onnxruntime on the CPU. Layers are always timed.

        Raises LayerwiseError where there is no model, or the words do not fit.
        """
        model = self._app.session.model
        if model is None:
            raise LayerwiseError(NO_MODEL)
        if words.strip():
            from layerwise._tool.tui.cli.bench.to_spec import parsed, to_bench

            try:
                args = parsed([str(model), *shell_words(words)])
            except ValueError as error:
                raise LayerwiseError(f"these are no options: {error}") from None
            return msgspec.structs.replace(to_bench(args).spec, profile=True)
        if self._app.perf.spec is not None:
            return msgspec.structs.replace(self._app.perf.spec, model=str(model), profile=True)
        return BenchSpec(model=str(model), runners=self._runners(), profile=True)

    def _runners(self) -> list[RunnerSpec]:
        compare = self._app.errors.spec
        found = [side for side in compare.runners if side.kind in TIMED] if compare is not None else []
        return found[:1] or [RunnerSpec(kind="onnxrt")]

    async def start(self, words: str = "") -> int:
        """Submit a bench and put it on view; the job's number. Raises LayerwiseError."""
        job = await self._app.client.submit(await asyncio.to_thread(bench_job, self.spec(words)))
        self._app.perf.ask(job)
        return job


def bench_job(spec: BenchSpec) -> JobSpec:
    """The job of a bench that the app starts; it leases a GPU if a runner asks for one."""
    command = command_line(spec)
    return JobSpec(
        action="bench", params=msgspec.to_builtins(spec), title=shell_line(command[1:], TITLE), command=command,
        gpus=wants_gpu(spec), source="tui",
    )  # fmt: skip


def node_of_layer(index: "GraphIndex | None", row: ProfileRow | None) -> int:
    """The node that a layer stands for, -1 if there is none in the graph that is open."""
    if index is None or row is None:
        return -1
    tensor = index.find_tensor(row.tensor)
    maker = index.producer(tensor) if tensor >= 0 else -1
    return maker if maker >= 0 else index.find_node(row.node)


def line_of_node(index: "GraphIndex", perf: PerfState, node: int) -> int:
    """The first line of the list whose layer stands for a node, -1 if there is none."""
    tensors = {index.tensor_name(tensor) for tensor in index.node_outputs(node)} if index.n_nodes else set()
    name = index.node_name(node) if index.n_nodes else ""
    rows = (perf.rows[place] for place in perf.order)
    fits = (row.tensor in tensors or (bool(name) and row.node == name) for row in rows)
    return next((line for line, fit in enumerate(fits) if fit), -1)


def yank_targets(spec: BenchSpec | None, row: ProfileRow | None) -> list[Copy]:
    """All that can be copied for a layer."""
    named = (("l", "layer", row.name), ("n", "node", row.node), ("t", "tensor", row.tensor)) if row else ()
    targets = [Copy(key, what, (name,)) for key, what, name in named if name]
    return [*targets, *([Copy("c", "command", tuple(command_line(spec)))] if spec is not None else [])]
