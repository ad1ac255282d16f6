"""The controllers that several screens share."""

from functools import cached_property

from layerwise._tool.tui.controllers.opening import WarmWorker
from layerwise._tool.tui.controllers.surgery import SurgeryController
from layerwise._tool.tui.state.shared import AppState


class Controllers:
    """Each is made when it is first asked for."""

    def __init__(self, state: AppState) -> None:
        self._state = state

    @cached_property
    def warm(self) -> WarmWorker:
        """The warm worker of the open model."""
        return WarmWorker(self._state.client, str(self._state.session.model))

    @cached_property
    def surgery(self) -> SurgeryController:
        """Who works on the edited model."""
        return SurgeryController(self._state, self.warm)
