"""Loaders that belong to no backend."""

from typing import Any

from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.scripts import load_function
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of
from layerwise.util.files import check_there, is_file_like, load_file, save_file

__all__ = ["BytesFromPath", "InvokeFromScript", "SaveBytes", "bytes_from_path", "invoke_from_script", "save_bytes"]


class BytesFromPath(BaseLoader[bytes]):
    """Reads a file, or an object that is one, as bytes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call_impl(self) -> bytes:
        if is_file_like(self.path):
            data: bytes = load_file(self.path)
            return data
        check_there(self.path)
        return read_file(self.path)


class SaveBytes(BaseLoader[bytes]):
    """Writes bytes to a file and returns them."""

    def __init__(self, obj: Lazy[bytes], path: str) -> None:
        self.obj = obj
        self.path = path

    def call_impl(self) -> bytes:
        data = value_of(self.obj)
        save_file(data, self.path)
        return data


class InvokeFromScript(BaseLoader[Any]):
    """Calls a function of a Python script, which is imported on every use; arguments are passed on."""

    def __init__(self, path: str, name: str) -> None:
        self._path = path
        self._name = name

    @property
    def __name__(self) -> str:
        return self._name

    def call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._load()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._load(), name)

    def _load(self) -> Any:
        return load_function(self._path, self._name)


bytes_from_path = immediate(BytesFromPath)
save_bytes = immediate(SaveBytes)
invoke_from_script = immediate(InvokeFromScript)
