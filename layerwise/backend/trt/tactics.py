"""Recording which tactics TensorRT 10 chooses, and having it choose them again."""

from pathlib import Path
from typing import Any

from backends.errors import UsageError
from backends.trt.capabilities import able, lacks
from backends.trt.library import tensorrt
from backends.trt.tactics import Tactics, make_selector, read_replay


class _Recording(Tactics):
    """Tactics that are written as soon as TensorRT reports them."""

    def __init__(self, path: str) -> None:
        super().__init__({}, {})
        self._path = Path(path)

    def report(self, contexts: Any, algorithms: Any) -> None:
        super().report(contexts, algorithms)
        self.save(self._path)


def TacticRecorder(record: str) -> Any:
    """An algorithm selector for CreateConfig that writes what TensorRT chooses to the file `record`.

    UsageError on TensorRT 11, which has no algorithm selectors.
    """
    return _selector(_Recording(record))


def TacticReplayer(replay: str) -> Any:
    """An algorithm selector for CreateConfig that has TensorRT choose what the file `replay` says.

    UsageError on TensorRT 11, BadFile for a file that is no replay. A recorded tactic that is not offered ends the
    build with a LayerwiseError.
    """
    return _selector(Tactics(read_replay(Path(replay)), {}))


def _selector(tactics: Tactics) -> Any:
    trt = tensorrt()
    if not able(trt, "algorithm_selector"):
        raise UsageError(lacks(trt, "algorithm_selector"))
    selector = make_selector(trt, tactics)
    selector.tactics = tactics
    return selector
