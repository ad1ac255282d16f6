"""Writes run results incrementally, in any order of runners, with one or two tensors in memory.

Destinations are a JSON file, a folder of JSON files, a safetensors file. Polygraphy's JSON is ordered by runner, a
comparison produces tensor by tensor: so each runner's text grows separately.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.filesystem.direct_io import PacedStream
from layerwise._tool.backends.filesystem.files import WholeOrNothing
from layerwise._tool.backends.filesystem.folders import is_free, whole_folder
from layerwise._tool.backends.formats.dumps import OBSERVED, RESULTS_FORMAT, DumpWriter
from layerwise._tool.backends.formats.json_arrays import CLASS, write_array
from layerwise._tool.backends.results.sections import open_parts
from layerwise._tool.backends.text import shown

_LINE = ["\n" + "    " * level for level in range(8)]
PENDING = 64 << 20  # bytes of tensors that may wait for the disk


class Sink(Protocol):
    """Takes outputs in order: a runner's iterations one by one, each ended by `finish`."""

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None: ...
    def finish(self, iteration: int, runner: int, runtime: float | None, observed: str) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class _RunnerText:
    """The JSON of one runner's iterations."""

    def __init__(self, name: str, stream: PacedStream) -> None:
        self.name = json.dumps(name)
        self.stream = stream
        self.iterations = 0
        self.outputs: set[str] | None = None  # of the current iteration
        self._write(f"[{_LINE[3]}{self.name},{_LINE[3]}[")

    def _write(self, text: str) -> None:
        self.stream.write(text.encode())

    def _begin(self) -> set[str]:
        if self.outputs is None:
            self._write(f'{"," if self.iterations else ""}{_LINE[4]}{{{_LINE[5]}"outputs": {{')
            self.iterations += 1
            self.outputs = set()
        return self.outputs

    def add(self, name: str, array: Array) -> None:
        outputs = self._begin()
        if name in outputs:
            raise ValueError(f"output {name!r} twice in one iteration")
        self._write(f'{"," if outputs else ""}{_LINE[6]}{json.dumps(name)}: {{{_LINE[7]}"values": ')
        write_array(self.stream, array, 7)
        self._write(f',{_LINE[7]}"{CLASS}": "LazyArray"{_LINE[6]}}}')
        outputs.add(name)

    def finish(self, runtime: float | None, observed: str) -> None:
        end = f"{_LINE[5]}}}" if self._begin() else "}"
        self._write(f'{end},{_LINE[5]}"runtime": {json.dumps(runtime)},{_LINE[5]}"runner_name": {self.name}')
        note = f',{_LINE[5]}"{OBSERVED}": {json.dumps(observed)}' if observed else ""
        self._write(f'{note},{_LINE[5]}"{CLASS}": "IterationResult"{_LINE[4]}}}')
        self.outputs = None

    def close(self) -> None:
        self._write(f"{_LINE[3] if self.iterations else ''}]{_LINE[2]}]")


class JsonSink:
    """One JSON file, with Polygraphy's layout byte for byte.

    Except for spaces between runners of a megabyte or more, and a note of how layers were observed, which it ignores.
    """

    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._parts = open_parts(path, max(1, len(runners)))
        first = self._parts.streams[0]
        first.write(f'{{{_LINE[1]}"lst": [{_LINE[2] if runners else ""}'.encode())
        self.texts = [_RunnerText(*pair) for pair in zip(runners, self._parts.streams, strict=False)]

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self.texts[runner].add(name, array)

    def finish(self, iteration: int, runner: int, runtime: float | None, observed: str) -> None:
        self.texts[runner].finish(runtime, observed)

    def close(self) -> None:
        for text in self.texts:
            if text.outputs is not None:
                raise ValueError("an iteration was not finished")
            text.close()
        end = f"{_LINE[1]}]" if self.texts else "]"
        end += f',{_LINE[1]}"{CLASS}": "RunResults"\n}}'
        self._parts.close(f",{_LINE[2]}".encode(), end.encode())

    def abort(self) -> None:
        self._parts.abort()


class FolderSink:
    """One JSON file per iteration, in a temporary folder that is renamed at the end."""

    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._runners = runners
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(whole_folder(path))
        self._open: dict[int, tuple[JsonSink, set[int]]] = {}

    def _sink(self, iteration: int) -> tuple[JsonSink, set[int]]:
        if iteration not in self._open:
            sink = JsonSink(self._folder / f"{iteration:010d}.json", self._runners)
            self._open[iteration] = sink, set(range(len(self._runners)))
        return self._open[iteration]

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self._sink(iteration)[0].add(0, runner, name, array)

    def finish(self, iteration: int, runner: int, runtime: float | None, observed: str) -> None:
        sink, left = self._sink(iteration)
        sink.finish(0, runner, runtime, observed)
        left.discard(runner)
        if not left:
            del self._open[iteration]
            sink.close()

    def close(self) -> None:
        for sink, _ in self._open.values():
            sink.close()
        self._open.clear()
        self._stack.close()

    def abort(self) -> None:
        for sink, _ in self._open.values():
            sink.abort()
        self._stack.__exit__(InterruptedError, InterruptedError(), None)


class DumpSink:
    """One safetensors file; keys are `<runner>.<iteration>:<output>`."""

    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._writer = DumpWriter(path)
        self._runners: list[tuple[str, list[float | None]]] = [(name, []) for name in runners]
        self._observed: list[list[str]] = [[] for _ in runners]

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self._writer.add(f"{runner}.{len(self._runners[runner][1])}:{name}", array)

    def finish(self, iteration: int, runner: int, runtime: float | None, observed: str) -> None:
        self._runners[runner][1].append(runtime)
        self._observed[runner].append(observed)

    def close(self) -> None:
        self._writer.metadata |= {"format": RESULTS_FORMAT, "runners": json.dumps(self._runners)}
        if any(map(any, self._observed)):
            self._writer.metadata[OBSERVED] = json.dumps(self._observed)
        self._writer.close()

    def abort(self) -> None:
        self._writer.abort()


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

    UsageError if the folder is not empty or not a folder, or its parent does not exist.
    """
    target = Path(path)
    check_target(target)
    if target.suffix == ".safetensors":
        return ResultsWriter(DumpSink(target, runners))
    if target.suffix:  # Polygraphy's rule: without an extension it is a folder of iterations
        return ResultsWriter(JsonSink(target, runners))
    return ResultsWriter(FolderSink(target, runners))


def check_target(target: Path) -> None:
    """Raise UsageError unless a file can come there, or, without an extension, a folder: an empty one may be there, or
    one from an earlier attempt of this job.
    """
    if not target.absolute().parent.is_dir():
        raise UsageError(f"cannot write {shown(str(target))}: its folder does not exist")
    if target.suffix:
        return
    if target.exists() and not target.is_dir():
        raise UsageError(f"{shown(str(target))}: a path without extension is a folder, but a file is there")
    if not is_free(target):
        raise UsageError(f"{shown(str(target))}: the folder is not empty; choose another, or empty it first")
