"""The controllers that several screens share."""

from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path

from layerwise._tool.tui.controllers.opening import WarmWorker
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.state.shared import AppState


async def _nowhere(path: Path, job: int | None) -> None:
    """Who opens models is not there yet."""


class Controllers:
    """Each is made when it is first asked for.

    open_model: leaves for a model once it is read, and shows a job there.
    """

    def __init__(self, state: AppState) -> None:
        self._state = state
        self.open_model: Callable[[Path, int | None], Awaitable[None]] = _nowhere

    @cached_property
    def warm(self) -> WarmWorker:
        """The warm worker of the open model."""
        return WarmWorker(self._state.client, str(self._state.session.model))

    @cached_property
    def surgery(self) -> SurgeryController:
        """Who works on the edited model."""
        return SurgeryController(self._state, self.warm)
