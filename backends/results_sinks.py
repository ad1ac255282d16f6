"""Where run results go: a JSON file, a folder of them, a safetensors file.

Polygraphy's JSON holds runner after runner, a comparison gives tensor after tensor. So the first runner's text
goes straight to the file, that of the others to unnamed temporary files, appended at the end.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from backends.dumps import DumpWriter
from backends.files import atomic_writer
from backends.json_arrays import CLASS, write_array
from backends.npy import Array
from backends.paced import PacedStream
from backends.results_io import RESULTS_FORMAT

_LINE = ["\n" + "    " * level for level in range(8)]


class Sink(Protocol):
    """Takes outputs in order: a runner's iterations one after the other, each ended by `finish`."""

    def add(self, iteration: int, runner: int, name: str, array: Array) -> None: ...
    def finish(self, iteration: int, runner: int, runtime: float | None) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


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


class JsonSink:
    """One JSON file, byte for byte as Polygraphy lays it out."""

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


class FolderSink:
    """One JSON file an iteration, in a temporary folder that gets its name at the end."""

    def __init__(self, path: Path, runners: Sequence[str]) -> None:
        self._target = path
        self._runners = runners
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix=f".{path.name[:64]}.", dir=path.parent))
        self._open: dict[int, tuple[JsonSink, set[int]]] = {}

    def _sink(self, iteration: int) -> tuple[JsonSink, set[int]]:
        assert self._folder is not None
        if iteration not in self._open:
            sink = JsonSink(self._folder / f"{iteration:010d}.json", self._runners)
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


class DumpSink:
    """One safetensors file; keys are `<runner>.<iteration>:<output>`."""

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
