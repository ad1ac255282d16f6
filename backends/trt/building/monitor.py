"""Progress of builds, and their cancellation."""

import threading
import time
from collections.abc import Callable
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError

Progress = Callable[[float, float | None, str], None]
_AT_ONCE = 0.5


def no_progress(done: float, total: float | None, text: str) -> None:
    """Ignore progress."""


class Listening:
    """The process-wide listener for builds without one of their own, and whether to end them."""

    def __init__(self) -> None:
        self.progress: Progress = no_progress
        self.over = False


OF_PROCESS = Listening()


def hear(progress: Progress) -> None:
    """Make `progress` listen to the builds of this process, from any thread, except very short ones: a search makes
    many.
    """
    OF_PROCESS.progress = progress


def give_up() -> None:
    """End the builds in other threads, each at its next step."""
    OF_PROCESS.over = True


class Build:
    """Phases of a build as reported by TensorRT's progress monitor, from any of its threads.

    Whatever `progress` raises (also a job's cancellation) ends the build at its next step; it is kept in `error`, since
    an exception must not pass through TensorRT. progress: None is the process-wide listener.
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
        """Report a completed step; return whether to continue."""
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
    """Return an IProgressMonitor that reports to `build`. Keep it until the build is over."""

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
