"""The strip of GPUs above the list of jobs: how busy each is, and with whose processes."""

import asyncio
import shutil

from layerwise._tool.backends.jobs.workspace.gpu_load import gpu_loads
from layerwise._tool.tui.presenters.gpus import gpu_lines
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import run_latest
from layerwise._tool.tui.widgets.lines import LinesView

EVERY = 5.0
MOST = 8


class GpuStrip(LinesView):
    """As many lines as there are GPUs, up to `MOST`; none without a driver. It asks while it can be seen."""

    DEFAULT_CSS = "GpuStrip { height: 0; }"

    def __init__(self, state: AppState) -> None:
        super().__init__(id="jobs-gpus")
        self._app_state = state

    def on_mount(self) -> None:
        super().on_mount()
        if shutil.which("nvidia-smi"):
            self.set_interval(EVERY, self._look)
            self._look()

    def _look(self) -> None:
        if self.is_on_screen:
            run_latest(self, "gpus", self._show)

    @property
    def is_on_screen(self) -> bool:
        """Whether its page is in front."""
        return all(node.display for node in self.ancestors_with_self)

    async def _show(self) -> None:
        gpus = (await asyncio.to_thread(gpu_loads))[:MOST]
        own = {view.pid for view in self._app_state.jobs.views if not view.final}
        self.styles.height = len(gpus)
        self.set_lines(gpu_lines(gpus, own, max(20, self.app.size.width), self._app_state.glyphs))
