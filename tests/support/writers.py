"""All that writes a file or a folder for the user, and dying at one line of it."""

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
from support.clean_fork import fork
from support.cli import Done, fork_of

from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.filesystem import temporary
from layerwise._tool.backends.filesystem import unnamed_files as unnamed
from layerwise._tool.backends.filesystem.files import atomic_write, atomic_writer
from layerwise._tool.backends.results.inference import IterationResult, RunResults

TRACED = (
    "files.py", "temporary.py", "unnamed_files.py", "permissions.py", "direct_io.py", "dumps.py", "json_format.py",
    "feeds/writer.py", "results/writer.py", "sinks.py", "sections.py",
)  # fmt: skip
LARGE = 270_000  # float64 elements: two of them are more than what is copied


def _results(path: Path, size: int = 3, iterations: int = 2) -> None:
    made = RunResults()
    for name in ("a", "b"):
        made.append(name, [IterationResult({"y": np.arange(float(size))}, 0.5, name) for _ in range(iterations)])
    made.save(path)


def _feeds(path: Path) -> None:
    save_feeds(path, [{"x": np.arange(3.0)}, {"x": np.arange(4.0)}])


def _two(path: Path) -> None:
    """Like a model and what it refers to: one open while the other is written."""
    with atomic_writer(path) as stream:
        atomic_write(path.with_name("out.data"), b"weights")
        stream.write(b"model")


def _in_folder(path: Path) -> None:
    """A file of a temporary folder, as conversions have it on the way."""
    from layerwise._tool.backends.filesystem.temporary import temporary_folder

    with temporary_folder() as folder:
        (folder / "half.onnx").write_bytes(b"half")
        atomic_write(path, (folder / "half.onnx").read_bytes())


WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "text": ("out.txt", lambda path: atomic_write(path, "x" * 5000)),
    "model and data": ("out.onnx", _two),
    "results": ("out.json", _results),
    "folder of results": ("out", _results),
    "large results": ("out.json", lambda path: _results(path, LARGE, 1)),
    "dump of results": ("out.safetensors", _results),
    "large dump": ("out.safetensors", lambda path: _results(path, LARGE, 1)),
    "feeds": ("out.json", _feeds),
    "folder of feeds": ("out", _feeds),
    "temporary folder": ("out.onnx", _in_folder),
}


def limit_system(system: str) -> None:
    """Have this process meet a file system that lacks something."""
    if system == "no unnamed files":
        unnamed.FLAG = None
    if system == "no links":
        os.link = _refuse


def _refuse(*_: object, **__: object) -> NoReturn:
    raise PermissionError


class Lines:
    """Counts the lines that our writers run in this process, and kills it before the one numbered `last`.

    before: called with the number of each line, before it runs.
    """

    def __init__(self, last: int = -1, before: Callable[[int], None] = lambda number: None) -> None:
        self.count, self.last, self.before = 0, last, before

    def __enter__(self) -> "Lines":
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        return self._line if "/backends/" in path and path.endswith(TRACED) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            self.before(self.count)
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
        return self._line


def forked(work: Callable[[], int]) -> int:
    """What `work` returns in a fork of this process, which must be a small number; -N if signal N killed it."""
    pid = fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lines_of(way: str, system: str, path: Path) -> int:
    """How many lines a way of writing runs."""
    return int(_aside("count", way=way, system=system, path=str(path)).stdout)


def write(way: str, system: str, path: Path, last: int = -1) -> int:
    """Write in a process that dies at line `last`; 0, or -9."""
    return _aside("write", way=way, system=system, path=str(path), last=last).returncode


def write_swept(way: str, path: Path, folders: Sequence[Path], every: int, first: int) -> int:
    """Write in a process beside which others sweep `folders`, before line `first` and every so many lines after it."""
    swept = [str(folder) for folder in folders]
    return _aside("swept", way=way, path=str(path), folders=swept, every=every, first=first).returncode


def lose_job(params: dict[str, object]) -> int:
    """Run the job that writes in a process that dies as soon as its worker is dead; -9."""
    return _aside("lose", params=params).returncode


def sweep_in_a_fork(path: Path) -> bool:
    """Whether a temporary folder beside `path` outlives a sweep by a fork of who has made it, and not its end."""
    return _aside("survive", path=str(path)).returncode == 0


# ── in a process of its own ──


def _aside(what: str, **arguments: object) -> Done:
    """Do one of `_DONE` in a fork of a process with one thread: in one of this process a lock of another thread would
    stay taken for ever."""
    done = fork_of("writers", (what, json.dumps(arguments)), Path.cwd())
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done


def _count(way: str, system: str, path: str) -> int:
    limit_system(system)
    with Lines() as lines:
        WAYS[way][1](Path(path))
    print(lines.count)
    return 0


def _write(way: str, system: str, path: str, last: int) -> int:
    limit_system(system)
    with Lines(last):
        WAYS[way][1](Path(path))
    return 0


def _write_swept(way: str, path: str, folders: list[str], every: int, first: int) -> int:
    def others(number: int) -> None:
        if number % every == first:
            sys.settrace(None)
            for folder in folders:
                temporary.sweep(Path(folder))
            sys.settrace(lines._enter)

    lines = Lines(before=others)
    with lines:
        WAYS[way][1](Path(path))
    return 0


def _lose(params: dict[str, object]) -> int:
    from support.forked import ForkedWorker
    from support.jobs import run

    from layerwise._tool.backends.jobs.processes.control import WorkerProcess
    from layerwise._tool.backends.jobs.workspace.store import Workspace

    def bury(worker: WorkerProcess) -> int:
        WorkerProcess.bury(worker)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    ForkedWorker.bury = bury  # type: ignore[method-assign]
    run(Workspace(), "write", params)
    return 0


def _survive(path: str) -> int:
    folder = temporary.TemporaryFolder(Path(path))
    swept = forked(lambda: temporary.sweep(Path(path).parent) or 0)  # type: ignore[func-returns-value]
    stayed = folder.path.is_dir()
    folder.discard()
    return int(swept or not stayed or folder.path.exists())


_DONE: dict[str, Callable[..., int]] = {
    "count": _count, "write": _write, "swept": _write_swept, "lose": _lose, "survive": _survive,
}  # fmt: skip


def main() -> int:
    """What the words of this process ask for."""
    tempfile.tempdir = None
    return _DONE[sys.argv[1]](**json.loads(sys.argv[2]))


def kill_points(count: int, least: int, seed: int) -> list[int]:
    """Line numbers: some anywhere, and some of the last ones, where the file gets its name."""
    random = np.random.default_rng(seed)
    end = range(max(1, count - least), count + 1)
    return sorted({*map(int, random.integers(1, count + 1, least)), *map(int, random.choice(list(end), least // 2))})
