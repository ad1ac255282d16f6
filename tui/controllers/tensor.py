"""One tensor of a comparison in full: a job of its own, its answers kept while the comparison is on view."""

from typing import Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.spec import JobSpec, load_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.state.shared import AppState


class TensorController:
    """Asks for tensors of the comparison on view."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._answers: dict[tuple[str, int], dict[str, Any]] = {}

    async def values(self, place: int) -> dict[str, Any]:
        """What `tensor_view` says of a row of the table.

        Raises LayerwiseError with the reason when the job fails.
        """
        key = (self._app.errors.job, place)
        if key not in self._answers:
            self._answers[key] = await self._run(place)
        return self._answers[key]

    async def _run(self, place: int) -> dict[str, Any]:
        client = self._app.client
        view = await client.wait(await client.submit(self.job(place)))
        if view.result is None:
            card = view.card or {}
            raise LayerwiseError(f"job {view.id} {view.state}: {card.get('summary', 'no result')}")
        return view.result

    def job(self, place: int) -> JobSpec:
        """The job that reads one tensor of both sides."""
        errors = self._app.errors
        row = errors.table.row(place)
        keys = ("tensor", "iteration", "mode", "atol", "rtol", "pair")
        params = {"compare": msgspec.to_builtins(errors.spec), **{key: getattr(row, key) for key in keys}}
        title = f"values of {shown(row.tensor, 120)}"
        compared = load_spec(self._app.workspace.folder(errors.job))
        return JobSpec(
            action="tensor_view", params=params, title=title, gpus=compared.gpus, cwd=compared.cwd, source="tui"
        )  # fmt: skip
