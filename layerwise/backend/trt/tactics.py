"""Recording which tactics TensorRT chooses, and having it choose them again.

By an algorithm selector on TensorRT 10; on 11, which has none, over the editable timing cache.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from layerwise._tool.backends.trt.capabilities import able
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import TrtOptions
from layerwise._tool.backends.trt.tactics.record import Recording, TacticRecord
from layerwise._tool.backends.trt.tactics.selection import Replay, Tactics, make_selector, read_tactics, recording
from layerwise.backend.trt.logger import MESSAGES, tell

_attached: dict[int, tuple[Any, Recording]] = {}


class CacheTactics:
    """What takes a selector's place in CreateConfig where tactics go over the editable timing cache."""

    def __init__(self, options: TrtOptions) -> None:
        self._options = options

    def attach(self, config: Any) -> bool:
        """Have the choices of a build with this config recorded or replayed; whether it has its timing cache so."""
        made = recording(tensorrt(), self._options)
        made.attach(config, MESSAGES)
        _attached[id(config)] = (config, made)
        return made.gives_cache


def save_tactics(config: Any) -> None:
    """Write what was chosen in a build with this config, if it is to be recorded."""
    _, made = _attached.pop(id(config), (config, Recording()))
    made.save(config, tell)


class _Recording(Tactics):
    """Tactics that are written as soon as TensorRT reports them."""

    def __init__(self, path: str | None, keep: Callable[[str, Any, Any], None]) -> None:
        super().__init__({}, {})
        self._path, self._keep = path, keep

    def report(self, contexts: Any, algorithms: Any) -> None:
        super().report(contexts, algorithms)
        for context, algorithm in zip(contexts, algorithms, strict=True):
            self._keep(context.name, context, algorithm)
        if self._path is not None:
            self.save(Path(self._path))


def recorder(record: str, keep: Callable[[str, Any, Any], None]) -> Any:
    """For CreateConfig: what TensorRT chooses is written to the file `record`, and given to `keep`.

    On TensorRT 10 an algorithm selector and Polygraphy's replay. On 11 a record of the editable timing cache, written
    by EngineFromNetwork and its like when the engine is built.
    """
    if not able(tensorrt(), "algorithm_selector"):
        return CacheTactics(TrtOptions(save_tactics=record))
    return _selector(_Recording(record, keep))


def replayer(replay: str) -> Any:
    """For CreateConfig: TensorRT chooses what the file `replay` says.

    BadFile for a file that is none; LayerwiseError when a recorded tactic is not offered, which ends the build, and
    UsageError for Polygraphy's replays on TensorRT 11.
    """
    found = read_tactics(Path(replay))
    options = TrtOptions(load_tactics=replay)
    if isinstance(found, TacticRecord) or not able(tensorrt(), "algorithm_selector"):
        recording(tensorrt(), options)
        return CacheTactics(options)
    return _selector(Tactics(found, {}))


def recorder_in_memory(keep: Callable[[str, Any, Any], None]) -> Any:
    """An algorithm selector of TensorRT 10 that gives what was chosen to a function: layer, context, algorithm."""
    return _selector(_Recording(None, keep))


def replayer_in_memory(replay: Replay) -> Any:
    """An algorithm selector of TensorRT 10 that chooses what a replay says."""
    return _selector(Tactics(replay, {}))


def _selector(tactics: Tactics) -> Any:
    selector = make_selector(tensorrt(), tactics)
    selector.tactics = tactics
    return selector
