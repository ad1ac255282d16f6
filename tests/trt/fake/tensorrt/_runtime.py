"""Runtime: bytes, or a stream of them, to an engine."""

from pathlib import Path
from typing import Any

from ._arguments import CLASSES
from ._classes import behaves
from ._engine import engine
from ._plan import from_bytes
from ._plugins import registry
from ._recording import api, version
from ._values import say


@behaves("Runtime")
class _Runtime:
    def _init(self, logger: Any) -> None:
        self._logger = logger
        self._values.update(max_threads=1, DLA_core=-1)

    logger = property(lambda self: self._logger)

    def get_plugin_registry(self) -> Any:
        return registry()

    def load_runtime(self, path: str) -> Any:
        if not Path(path).read_bytes().startswith(b"\x7fELF"):
            say(self._logger, "ERROR", f"loadRuntime: Error Code 3: API Usage Error ({path}: file too short or no ELF)")
            return None
        return self

    def deserialize_cuda_engine(self, serialized_engine: Any) -> Any:
        plan = from_bytes(_bytes(serialized_engine))
        if plan is None:
            say(self._logger, "ERROR", "deserializeCudaEngine: Error Code 1: Serialization (Magic tag does not match)")
            return None
        if plan.header["major"] != version() and "VERSION_COMPATIBLE" not in plan.header["flags"]:
            say(self._logger, "ERROR", "deserializeCudaEngine: Error Code 6: API Usage Error (The engine plan "
                f"file is not compatible with this version of TensorRT, expecting library version {api()['version']} "
                f"got {plan.header['version']}, please rebuild.)")  # fmt: skip
            return None
        lean = "VERSION_COMPATIBLE" in plan.header["flags"]
        if lean and not self._values.get("engine_host_code_allowed"):
            say(self._logger, "ERROR", "Cannot deserialize engine with lean runtime: engine_host_code_allowed is false")
            return None
        return engine(plan, self._logger)


def _bytes(source: Any) -> bytes:
    try:
        return bytes(memoryview(source))
    except TypeError:
        return _streamed(source)


def _streamed(reader: Any) -> bytes:
    """Everything a stream reader gives: the fake hands it a writable buffer where the real one hands an address."""
    parts = []
    while True:
        part = reader.read(1 << 20) if not _second(reader) else reader.read(1 << 20, 0)
        if not part:
            return b"".join(parts)
        parts.append(bytes(part))


def _second(reader: Any) -> bool:
    return isinstance(reader, CLASSES["IStreamReaderV2"])
