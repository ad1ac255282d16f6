"""Writing run results while they are still coming, in any order of runners, in the memory of a tensor or two.

Polygraphy's JSON holds runner after runner, a comparison gives tensor after tensor. So the first runner's
text goes straight to the file, that of the others to unnamed temporary files, appended at the end.
"""

import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from backends.dumps import DumpWriter
from backends.errors import UsageError
from backends.files import atomic_writer
from backends.json_format import CLASS, write_array
from backends.npy import Array
from backends.paced import PacedStream
from backends.results_io import RESULTS_FORMAT, is_single_file
from backends.text import shown

PENDING = 64 << 20  # bytes of tensors that may wait for the disk
_LINE = ["\n" + "    " * level for level in range(8)]


class _Sink(Protocol):
    def add(self, iteration: int, runner: int, name: str, array: Array) -> None: ...
    def finish(self, iteration: int, runner: int, runtime: float | None) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class ResultsWriter:
    """Takes outputs as they come and writes them behind the caller's back.

    A runner's iterations come in order, each ended by `finish`; runners may interleave. Arrays given are kept
    until they are written (at most 64 MiB, or one, at a time) and must not change. The target appears, whole,
    at `close`. Errors of the disk (OSError) come out of any call.
    """

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._thread = ThreadPoolExecutor(1, "results-writer")
        self._waiting: deque[tuple[int, Future[None]]] = deque()

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        """Give one output of a runner (its place among the runners) in an iteration."""
        self._submit(array.nbytes, lambda: self._sink.add(iteration, runner, name, array))

    def finish(self, iteration: int, runner: int, runtime: float | None) -> None:
        """Say that a runner's iteration is complete. runtime: seconds."""
        self._submit(0, lambda: self._sink.finish(iteration, runner, runtime))

    def _submit(self, nbytes: int, work: Callable[[], None]) -> None:
        self._drain(PENDING - nbytes)
        self._waiting.append((nbytes, self._thread.submit(work)))

    def _drain(self, limit: int) -> None:
        while self._waiting and (self._waiting[0][1].done() or sum(n for n, _ in self._waiting) > limit):
            self._waiting.popleft()[1].result()

    def close(self) -> None:
        """Wait for all and put the target in place."""
        self._drain(-1)
        self._thread.shutdown()
        self._sink.close()

    def abort(self) -> None:
        """Leave nothing behind."""
        self._thread.shutdown(cancel_futures=True)
        self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self.abort)
            if kind is None:
                self.close()


def open_results_writer(path: str | os.PathLike[str], runners: Sequence[str]) -> ResultsWriter:
    """Open a writer for these runners: .safetensors, any other extension for JSON, none for a folder.

    UsageError if the folder is not empty or not a folder, or its parent does not exist.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise UsageError(f"cannot write {shown(str(path))}: its folder does not exist")
    if target.suffix == ".safetensors":
        return ResultsWriter(_DumpSink(target, runners))
    if is_single_file(target):
        return ResultsWriter(_JsonSink(target, runners))
    check_empty_folder(target)
    return ResultsWriter(_FolderSink(target, runners))


def check_empty_folder(target: Path) -> None:
    """Raise UsageError unless `target` is an empty folder or nothing yet."""
    if target.exists() and not target.is_dir():
        raise UsageError(f"{shown(str(target))}: a path without extension is a folder, but a file is there")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{shown(str(target))}: the folder is not empty; choose another, or empty it first")


class _RunnerText:
    """The JSON of one runner's iterations."""

    def __init__(self, name: str, stream: PacedStream) -> None:
        self.name = json.dumps(name)
        self.stream = stream
        self.iterations = 0
        self.outputs: set[str] | None = None  # of the iteration that is being written
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

    def finish(self, runtime: float | None) -> None:
        end = f"{_LINE[5]}}}" if self._begin() else "}"
        self._write(f'{end},{_LINE[5]}"runtime": {json.dumps(runtime)},{_LINE[5]}"runner_name": {self.name}')
        self._write(f',{_LINE[5]}"{CLASS}": "IterationResult"{_LINE[4]}}}')
        self.outputs = None

    def close(self) -> None:
        self._write(f"{_LINE[3] if self.iterations else ''}]{_LINE[2]}]")


class _JsonSink:
    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._stack = ExitStack()
        stream = PacedStream(self._stack.enter_context(atomic_writer(path)))
        stream.write(f'{{{_LINE[1]}"lst": ['.encode())
        self.texts: list[_RunnerText] = []
        for name in runners:
            if self.texts:
                file = self._stack.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
                part = PacedStream(file)
            else:
                part = stream
                part.write(_LINE[2].encode())
            self.texts.append(_RunnerText(name, part))
        self._stream = stream

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self.texts[runner].add(name, array)

    def finish(self, iteration: int, runner: int, runtime: float | None) -> None:
        self.texts[runner].finish(runtime)

    def close(self) -> None:
        for text in self.texts:
            if text.outputs is not None:
                raise ValueError("an iteration was not finished")
            text.close()
            if text.stream is not self._stream:
                self._stream.write(f",{_LINE[2]}".encode())
                text.stream.append_to(self._stream)
        end = f"{_LINE[1]}]" if self.texts else "]"
        self._stream.write(f'{end},{_LINE[1]}"{CLASS}": "RunResults"\n}}'.encode())
        self._stack.close()

    def abort(self) -> None:
        cancelled = InterruptedError()
        self._stack.__exit__(InterruptedError, cancelled, None)


class _FolderSink:
    """One JSON file an iteration, in a temporary folder that gets its name at the end."""

    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._target = path
        self._runners = runners
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix=f".{path.name[:64]}.", dir=path.parent))
        self._open: dict[int, tuple[_JsonSink, set[int]]] = {}

    def _sink(self, iteration: int) -> tuple[_JsonSink, set[int]]:
        assert self._folder is not None
        if iteration not in self._open:
            sink = _JsonSink(self._folder / f"{iteration:010d}.json", self._runners)
            self._open[iteration] = sink, set(range(len(self._runners)))
        return self._open[iteration]

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self._sink(iteration)[0].add(0, runner, name, array)

    def finish(self, iteration: int, runner: int, runtime: float | None) -> None:
        sink, left = self._sink(iteration)
        sink.finish(0, runner, runtime)
        left.discard(runner)
        if not left:
            del self._open[iteration]
            sink.close()

    def close(self) -> None:
        assert self._folder is not None
        for sink, _ in self._open.values():
            sink.close()
        self._open.clear()
        self._folder.chmod(0o755)
        self._folder.replace(self._target)
        self._folder = None

    def abort(self) -> None:
        for sink, _ in self._open.values():
            sink.abort()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class _DumpSink:
    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._writer = DumpWriter(path)
        self._runners: list[tuple[str, list[float | None]]] = [(name, []) for name in runners]

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None:
        self._writer.add(f"{runner}.{len(self._runners[runner][1])}:{name}", array)

    def finish(self, iteration: int, runner: int, runtime: float | None) -> None:
        self._runners[runner][1].append(runtime)

    def close(self) -> None:
        self._writer.metadata |= {"format": RESULTS_FORMAT, "runners": json.dumps(self._runners)}
        self._writer.close()

    def abort(self) -> None:
        self._writer.abort()
