"""Writes run results incrementally, in any order of runners, with one or two tensors in memory."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError, placing
from layerwise._tool.backends.filesystem.files import WholeOrNothing
from layerwise._tool.backends.filesystem.folders import is_free
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.results.sinks import DumpSink, FolderSink, JsonSink, Sink
from layerwise._tool.backends.text import shown

PENDING = 64 << 20  # bytes of tensors that may wait for the disk


class ResultsWriter(WholeOrNothing):
    """Writes outputs in a background thread as they come.

    A runner's iterations come in order, each ended by `finish`; runners may interleave. Arrays are kept
    until they are written (at most 64 MiB, or one, at a time) and must not change. The target appears, complete,
    at `close`. Disk errors (OSError) can be raised by any call.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._thread = ThreadPoolExecutor(1, "results-writer")
        self._waiting: deque[tuple[int, Future[None]]] = deque()

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        """Add one output of a runner (given by its index) in an iteration."""
        self._submit(array.nbytes, lambda: self._sink.add(iteration, runner, name, array))

    def finish(self, iteration: int, runner: int, runtime: float | None, observed: str = "") -> None:
        """Mark a runner's iteration as complete. runtime, observed: as in IterationResult."""
        self._submit(0, lambda: self._sink.finish(iteration, runner, runtime, observed))

    def _submit(self, nbytes: int, work: Callable[[], None]) -> None:
        self._drain(PENDING - nbytes)
        self._waiting.append((nbytes, self._thread.submit(work)))

    def _drain(self, limit: int) -> None:
        while self._waiting and (self._waiting[0][1].done() or sum(n for n, _ in self._waiting) > limit):
            self._waiting.popleft()[1].result()

    def close(self) -> None:
        """Wait for everything and move the target into place."""
        self._drain(-1)
        self._thread.shutdown()
        self._sink.close()

    def abort(self) -> None:
        """Discard everything written."""
        self._thread.shutdown(cancel_futures=True)
        self._sink.abort()


def open_results_writer(path: str | os.PathLike[str], runners: Sequence[str]) -> ResultsWriter:
    """Open a writer for these runners: .safetensors, JSON for any other extension, a folder for none.

    UsageError if the folder is not empty or not a folder; LayerwiseError if its parents cannot be made.
    """
    target = Path(path)
    with placing(target):
        make_folder(target.absolute().parent)
    if target.suffix == ".safetensors":
        return ResultsWriter(DumpSink(target, runners))
    if target.suffix:  # Polygraphy's rule: without an extension it is a folder of iterations
        return ResultsWriter(JsonSink(target, runners))
    check_empty_folder(target)
    return ResultsWriter(FolderSink(target, runners))


def check_empty_folder(target: Path) -> None:
    """Raise UsageError unless `target` is an empty folder, absent, or from an earlier attempt of this job."""
    if target.exists() and not target.is_dir():
        raise UsageError(f"{shown(str(target))}: a path without extension is a folder, but a file is there")
    if not is_free(target):
        raise UsageError(f"{shown(str(target))}: the folder is not empty; choose another, or empty it first")
