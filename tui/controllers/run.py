"""What the Run form does: checks, costs, the command line, and starting the job."""

import asyncio

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.backends.specs import FeedSpec, InputPlan
from layerwise._tool.backends.tensors import TensorInfo
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.controllers.opening import WarmWorker, is_engine
from layerwise._tool.tui.presenters.compare_text import compare_title
from layerwise._tool.tui.state.mark_cost import Cost, mark_cost
from layerwise._tool.tui.state.run_check import Checked, check
from layerwise._tool.tui.state.run_fields import Field, fields, repaired
from layerwise._tool.tui.state.run_form import RunForm, apply_preset, first_form, load_form, preset, save_form
from layerwise._tool.tui.state.run_inputs import InputLine
from layerwise._tool.tui.state.shared import AppState


class RunController:
    """The form of the session, checked anew whenever it changes."""

    def __init__(self, app: AppState, warm: WarmWorker | None = None) -> None:
        self._app, self._warm = app, warm
        self._planned: bytes | None = None
        self.plans: dict[str, InputPlan] = {}
        self._told, self._failed = "", False
        saved = app.session.forms.get("run")
        self.form = repaired(load_form(saved)) if saved is not None else first_form(app.settings.tolerance)
        self.checked = Checked(None, {})
        self.cost: Cost | None = None
        self.check()

    def change(self, form: RunForm) -> None:
        """Take a changed form."""
        self.form = form
        self._app.session.remember("run", form=save_form(form))
        self.check()

    def check(self) -> None:
        """Check against the model and marks as they are now."""
        session = self._app.session
        self.checked = check(self.form, session.model, sorted(session.marks), self.inputs())

    def use_preset(self, name: str) -> None:
        """Fill the form from a preset."""
        self.change(apply_preset(preset(name), self.form, self._inputs()))

    def inputs(self) -> list[TensorInfo]:
        """The open model's inputs; none before it is indexed."""
        index = self._app.session.index
        if index is None:
            return []
        names = [str(found["name"] if isinstance(found, dict) else found) for found in index.meta.get("inputs", [])]
        tensors = [(name, index.find_tensor(name)) for name in names]
        return [TensorInfo(name, index.tensor_dtype(at), index.tensor_shape(at)) for name, at in tensors if at >= 0]

    def fields(self) -> list[Field]:
        """The form's fields, with a line for each input of the open model."""
        unplanned = "not known" if self._failed else "being read"
        if self.checked.feeds is None:
            unplanned = "known once what is wrong with the feeds is mended"
        return fields(self.form, [InputLine(info, self.plans.get(info.name), unplanned) for info in self.inputs()])

    @property
    def plan_problem(self) -> str:
        """What is to be said of the plan of the inputs."""
        return self._told if self._planned_feeds() is not None else ""

    def _inputs(self) -> list[tuple[str, tuple[int | str | None, ...] | None]]:
        """Names and shapes of the inputs; dimensions but the first as they are planned."""
        found: list[tuple[str, tuple[int | str | None, ...] | None]] = []
        for info in self.inputs():
            plan = self.plans.get(info.name)
            shape = info.shape
            if shape and plan is not None and self.form.made == "auto":
                shape = (*shape[:1], *plan.shapes[0][1:])
            found.append((info.name, shape))
        return found

    async def find_plan(self) -> bool:
        """Ask the warm worker what the inputs get, unless that is known; returns whether it is known anew."""
        feeds, model = self._planned_feeds(), self._app.session.model
        if feeds is None or self._warm is None:
            return False
        asked = msgspec.json.encode(feeds)
        if asked == self._planned:
            return False
        self._told, self._failed = "", False
        try:
            params = {"path": str(model), "feeds": msgspec.to_builtins(feeds)}
            answer = await self._warm.ask("input_plan", params)
        except LayerwiseError as error:
            self._told, self._failed = str(error), True
            return True
        self._planned = asked
        self.plans = {plan.name: plan for plan in msgspec.convert(answer["plan"], list[InputPlan])}
        self._told = " ".join(answer["warnings"])
        return True

    def _planned_feeds(self) -> FeedSpec | None:
        """What the plan of the inputs hangs on; None where there is none to make."""
        feeds, session = self.checked.feeds, self._app.session
        if feeds is None or session.model is None or session.index is None or is_engine(session.model):
            return None
        if feeds.made != "auto" or self.form.source != "synthetic":
            return None
        return msgspec.structs.replace(feeds, iterations=None, seed=1)

    async def find_cost(self) -> None:
        """Find what marking costs, off the screen's thread."""
        index, spec = self._app.session.index, self.checked.spec
        if index is None or spec is None:
            self.cost = None
        else:
            planned = {name: plan.shapes for name, plan in self.plans.items()} if spec.feeds.made == "auto" else {}
            self.cost = await asyncio.to_thread(mark_cost, index, spec.marks, {**planned, **spec.feeds.shapes})

    def command(self) -> list[str]:
        """The command line that does the same; empty while something is wrong."""
        return command_line(self.checked.spec) if self.checked.spec is not None else []

    async def start(self, spec: CompareSpec) -> int:
        """Submit a comparison and put it on view; returns the job's id.

        Raises LayerwiseError when the job cannot be made.
        """
        job = await self._app.client.submit(await asyncio.to_thread(compare_job, spec))
        self._app.session.set_compare_job(str(job))
        return job


def compare_job(spec: CompareSpec) -> JobSpec:
    """The job of a comparison that the app starts; it leases a GPU if a side asks for one."""
    return JobSpec(
        action="compare",
        params=msgspec.to_builtins(spec),
        title=compare_title(spec),
        command=command_line(spec),
        gpus=wants_gpu(spec),
        cwd=str(current_folder()),
        source="tui",
    )


def wants_gpu(spec: CompareSpec | BenchSpec) -> int:
    """How many GPUs a comparison or a bench leases. It may ask the driver: call it off the screen's thread."""
    return gpus_for(spec.runners)
