"""Cells run by threads of this process, several at a time: each only sees the processes of its cell through."""

import queue
import threading
from collections.abc import Mapping

from layerwise._tool.backends.cluster.protocol import Ended
from layerwise._tool.backends.errors import LayerwiseError, refusal
from layerwise._tool.debugtools.cluster.versions import own_versions
from layerwise._tool.debugtools.matrix.cell import run_text


class LocalCells:
    """Runs texts (Orders) in threads. Made, used and closed by one thread."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._ended: queue.SimpleQueue[Ended] = queue.SimpleQueue()

    def slots(self, gpu: bool) -> int:
        """How many cells may run at a time; GPUs are leased by the jobs themselves."""
        return self._workers

    def versions(self) -> Mapping[str, Mapping[str, str]]:
        """What computes here, by who would run it."""
        return {"here": own_versions()}

    def start(self, name: str, text: str, gpu: bool) -> None:
        """Run one text; `wait` tells how it ended."""
        threading.Thread(target=self._run, args=(name, text), daemon=True).start()

    def wait(self, seconds: float) -> Ended | None:
        """The next one that has ended, None if none does within so many seconds."""
        try:
            return self._ended.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Nothing is left behind: the threads end with their cells."""

    def _run(self, name: str, text: str) -> None:
        try:
            self._ended.put(Ended(name, run_text(text)))
        except (LayerwiseError, OSError) as error:
            self._ended.put(Ended(name, error=refusal(error) or str(error)))
        except BaseException as error:
            self._ended.put(Ended(name, error=f"{type(error).__name__}: {error}"))
            raise
