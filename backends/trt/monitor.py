"""How far a build is, and its end when somebody gives up."""

import threading
from collections.abc import Callable
from typing import Any

Progress = Callable[[float, float | None, str], None]


def no_progress(done: float, total: float | None, text: str) -> None:
    """Tell nobody."""


class Build:
    """Phases of a build as TensorRT's progress monitor hears them, from any of its threads.

    Whatever `progress` raises (a cancelled job among it) ends the build at its next step; it is kept in `error`, since
    an exception must not pass through TensorRT.
    """

    def __init__(self, progress: Progress = no_progress) -> None:
        self.error: BaseException | None = None
        self._progress = progress
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
            try:
                if self.error is None:
                    self._progress(step + 1, steps or None, path)
            except BaseException as error:
                self.error = error
            return self.error is None

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
