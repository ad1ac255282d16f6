"""What the Run form does: checks, costs, the command line, and starting the job."""

import asyncio

import msgspec

from layerwise._tool.backends.filesystem.files import current_folder
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.gpus import gpus_for
from layerwise._tool.debugtools.bench.spec import BenchSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.presenters.compare_text import compare_title
from layerwise._tool.tui.state.mark_cost import Cost, mark_cost
from layerwise._tool.tui.state.run_check import Checked, check
from layerwise._tool.tui.state.run_fields import repaired
from layerwise._tool.tui.state.run_form import RunForm, apply_preset, load_form, preset, save_form
from layerwise._tool.tui.state.shared import AppState


class RunController:
    """The form of the session, checked anew whenever it changes."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        saved = app.session.forms.get("run")
        self.form = repaired(load_form(saved)) if saved is not None else RunForm(preset="layerwise")
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
        self.checked = check(self.form, self._app.session.model, sorted(self._app.session.marks))

    def use_preset(self, name: str) -> None:
        """Fill the form from a preset."""
        self.change(apply_preset(preset(name), self.form, self._inputs()))

    def _inputs(self) -> list[tuple[str, tuple[int | str | None, ...] | None]]:
        index = self._app.session.index
        if index is None:
            return []
        names = [str(found["name"] if isinstance(found, dict) else found) for found in index.meta.get("inputs", [])]
        tensors = [(name, index.find_tensor(name)) for name in names]
        return [(name, index.tensor_shape(tensor)) for name, tensor in tensors if tensor >= 0]

    async def find_cost(self) -> None:
        """Find what marking costs, off the screen's thread."""
        index, spec = self._app.session.index, self.checked.spec
        if index is None or spec is None:
            self.cost = None
        else:
            self.cost = await asyncio.to_thread(mark_cost, index, spec.marks, spec.feeds.shapes)

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
