"""Loaders that belong to no backend."""

import importlib.util
from pathlib import Path
from typing import Any

from backends.errors import BadFile, UsageError
from backends.files import atomic_write
from layerwise.backend.base import BaseLoader, Lazy, immediate, value_of


class BytesFromPath(BaseLoader[bytes]):
    """Reads a file as bytes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call_impl(self) -> bytes:
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise BadFile(self.path, error.strerror or str(error)) from None


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
        spec = importlib.util.spec_from_file_location(Path(self.path).stem, self.path)
        if spec is None or spec.loader is None or not Path(self.path).is_file():
            raise BadFile(self.path, "not a Python script that can be read")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not hasattr(module, self.name):
            raise UsageError(f"{self.path} has no {self.name}")
        found = getattr(module, self.name)
        return found() if isinstance(found, type) else found


bytes_from_path = immediate(BytesFromPath)
save_bytes = immediate(SaveBytes)
invoke_from_script = immediate(InvokeFromScript)
