"""Loaders that belong to no backend."""

from typing import Any

from layerwise._tool.backends.filesystem.files import atomic_write, read_file
from layerwise._tool.backends.scripts import load_function
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of


class BytesFromPath(BaseLoader[bytes]):
    """Reads a file as bytes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call_impl(self) -> bytes:
        return read_file(self.path)


class SaveBytes(BaseLoader[bytes]):
    """Writes bytes to a file and returns them."""

    def __init__(self, obj: Lazy[bytes], path: str) -> None:
        self.obj = obj
        self.path = path

    def call_impl(self) -> bytes:
        data = value_of(self.obj)
        atomic_write(self.path, data)
        return data


class InvokeFromScript(BaseLoader[Any]):
    """Calls a function of a Python script, which is imported on every use; arguments are passed on."""

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name

    def call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._load()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._load(), name)

    def _load(self) -> Any:
        return load_function(self.path, self.name)


bytes_from_path = immediate(BytesFromPath)
save_bytes = immediate(SaveBytes)
invoke_from_script = immediate(InvokeFromScript)
