"""How far a build is, and its end when somebody gives up."""

import threading
import time
from typing import Any

from layerwise._tool.backends.builds import OF_PROCESS, Progress
from layerwise._tool.backends.errors import LayerwiseError

_AT_ONCE = 0.5


class Build:
    """Phases of a build as TensorRT's progress monitor hears them, from any of its threads.

    Whatever `progress` raises (a cancelled job among it) ends the build at its next step; it is kept in `error`, since
    an exception must not pass through TensorRT. progress: None is the listener of the process.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.error: BaseException | None = None
        self._progress = progress or OF_PROCESS.progress
        self._from = 0.0 if progress else time.monotonic() + _AT_ONCE
        self._lock = threading.Lock()
        self._phases: dict[str, tuple[str, int]] = {}

    def start(self, phase: str, parent: str | None, steps: int) -> None:
        with self._lock:
            above = self._phases.get(parent or "", ("", 0))[0]
            self._phases[phase] = (f"{above} > {phase}" if above else phase, steps)

    def step(self, phase: str, step: int) -> bool:
        """One step is done; whether to go on."""
        with self._lock:
            path, steps = self._phases.get(phase, (phase, 0))
            if self.error is None:
                self.error = self._told(step + 1, steps or None, path)
            return self.error is None

    def _told(self, done: float, total: float | None, text: str) -> BaseException | None:
        try:
            if time.monotonic() >= self._from:
                self._progress(done, total, text)
        except BaseException as error:
            return error
        return LayerwiseError("the build was given up") if OF_PROCESS.over else None

    def finish(self, phase: str) -> None:
        with self._lock:
            self._phases.pop(phase, None)


def make_monitor(trt: Any, build: Build) -> Any:
    """An IProgressMonitor that tells `build`. Keep it until the build is over."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            build.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            return build.step(phase_name, step)

        def phase_finish(self, phase_name: str) -> None:
            build.finish(phase_name)

    return Monitor()
