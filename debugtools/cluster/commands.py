"""Commands on a dask cluster, asked for from any thread."""

import queue
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.cluster.dask import DaskRuns
from layerwise._tool.backends.cluster.protocol import Runs
from layerwise._tool.backends.cluster.where import Where
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.cluster.asked import AskedCommand, Exited
from layerwise._tool.debugtools.cluster.versions import VERSIONS, agreed_versions

LOSSES = 3
"""How often a worker may be lost with a command before the command is given up: it may bring them down."""
_RUN = "layerwise._tool.debugtools.cluster.running:run_text"
_SOON, _IDLE = 0.02, 0.5  # seconds


class _Out(Struct):
    """A command that is out, and who waits for it. losses: of its workers."""

    asked: AskedCommand
    told: "Future[Exited]"
    losses: int = 0


def on_cluster(where: Where, private: Path, tell: Callable[[str], None]) -> "Commands":
    """Commands run there. LayerwiseError where it cannot be reached, or is of another version; MissingPackage without
    dask."""
    return Commands(lambda: DaskRuns(where, _RUN, VERSIONS, private, tell))


class Commands:
    """Runs commands by what `make` gives, which one thread makes and uses. slots: how many run at a time."""

    def __init__(self, make: Callable[[], Runs]) -> None:
        self._asked: queue.SimpleQueue[_Out] = queue.SimpleQueue()
        self._waiting: deque[_Out] = deque()
        self._out: dict[str, _Out] = {}
        self._number = 0
        self._broken: Exception | None = None
        there: Future[int] = Future()
        threading.Thread(target=self._serve, args=(make, there), name="cluster", daemon=True).start()
        self.slots = there.result()

    def run(self, asked: AskedCommand) -> Exited:
        """How it ended, once it has. LayerwiseError where it cannot be run there, or the cluster is gone."""
        out = _Out(asked, Future())
        self._asked.put(out)
        exited = out.told.result()
        if exited.refused:
            raise LayerwiseError(f"a worker cannot run the command: {exited.refused}")
        return exited

    def _serve(self, make: Callable[[], Runs], there: "Future[int]") -> None:
        try:
            runs = make()
            self._versions = agreed_versions(runs)
            there.set_result(max(1, runs.slots(False)))
        except BaseException as error:
            there.set_exception(error)
            return
        try:
            while True:
                self._take_in()
                self._send(runs)
                if self._out and (ended := runs.wait(_SOON)) is not None:
                    self._take(ended.name, ended.text, ended.error, ended.lost)
        except Exception as error:
            self._broken = error
            for out in (*self._out.values(), *self._waiting):
                out.told.set_exception(error)
            while True:  # whoever asks from now on is told at once
                self._asked.get().told.set_exception(error)

    def _take_in(self) -> None:
        try:
            self._waiting.append(self._asked.get(timeout=_SOON if self._out or self._waiting else _IDLE))
            while True:
                self._waiting.append(self._asked.get_nowait())
        except queue.Empty:
            pass

    def _send(self, runs: Runs) -> None:
        while self._waiting and len(self._out) < runs.slots(False):
            out = self._waiting.popleft()
            self._number += 1
            name = f"command-{self._number}"
            self._out[name] = out
            text = msgspec.json.encode(replace(out.asked, versions=self._versions)).decode()
            runs.start(name, text, False)

    def _take(self, name: str, text: str | None, error: str, lost: bool) -> None:
        out = self._out.pop(name, None)
        if out is None:
            return
        if text is not None:
            out.told.set_result(msgspec.json.decode(text, type=Exited))
        elif not lost:
            out.told.set_exception(LayerwiseError(f"the command could not be run: {error}"))
        elif out.losses + 1 >= LOSSES:
            out.told.set_result(Exited(losses=out.losses + 1))
        else:
            out.losses += 1
            self._waiting.appendleft(out)
