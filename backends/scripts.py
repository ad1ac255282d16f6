"""Runs functions of a user's Python script, with errors that point to the script's own lines.

Only done in a worker process. The script's folder stays on `sys.path` for later imports. Modules there are compiled
from their source each time: Python takes compiled ones for current where size and second of the change agree.
"""

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import shown

_MOST = 4 << 20  # bytes of a script; the parser takes hundreds of times as many
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = Path(os.__file__).parent
_folders: set[Path] = set()


@contextmanager
def script_errors(path: Path, what: str) -> Iterator[None]:
    """Turn any error of the script's code into a LayerwiseError that names its file, line and cause.

    MemoryError is not converted, nor are exceptions that end the process from outside.
    """
    try:
        yield
    except (LayerwiseError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise LayerwiseError(f"{shown(what)} failed: {_told(path, error)}") from error


def _told(path: Path, error: BaseException) -> str:
    text = f"{type(error).__name__}: {shown(str(error), 500)}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{shown(str(path))}, line {error.lineno}: {text}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    if not frames:
        return f"{shown(str(path))}: {text}"
    last = frames[-1]
    return f"{shown(str(path))}, line {last.lineno}, in {last.name}: {text}"


def load_function(path: str | Path, name: str) -> Any:
    """Run a script and return its object `name`; a class is instantiated.

    UsageError if the file or the name does not exist, LayerwiseError if the script fails.
    """
    script = Path(path).absolute()
    module = load_script(script)
    if not hasattr(module, name):
        there = [key for key in vars(module) if not key.startswith("_") and callable(vars(module)[key])]
        told = shown(", ".join(there), 200) or "nothing"
        raise UsageError(f"script {shown(str(path))} has no {shown(name, 80)!r}; it has: {told}")
    found = getattr(module, name)
    with script_errors(script, f"{name}()"):
        return found() if isinstance(found, type) else found


def load_script(script: Path) -> ModuleType:
    """Run a script and return it as a module. UsageError if it does not exist, LayerwiseError if it fails."""
    if not script.exists():
        raise UsageError(f"script {shown(str(script))} does not exist")
    read_file(script, _MOST)
    return _run(script)


class _FromSource(SourceFileLoader):
    """Compiles a module each time it is imported."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _finder(folder: str) -> FileFinder:
    """The finder of a folder of scripts, as an entry of `sys.path_hooks`. ImportError for all others."""
    path = Path(folder)
    installed = _INSTALLED.intersection(path.parts) or path.is_relative_to(_STANDARD)
    if installed or not path.is_dir() or not any(path.is_relative_to(parent) for parent in _folders):
        raise ImportError
    loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, [".py"]), (SourcelessFileLoader, BYTECODE_SUFFIXES)
    )  # fmt: skip
    return FileFinder(folder, *loaders)


def _importable(folder: Path) -> None:
    """Have modules in a script's folder imported, from their source."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if folder not in _folders:
        _folders.add(folder)
        for known in [path for path in list(sys.path_importer_cache) if Path(path).is_relative_to(folder)]:
            sys.path_importer_cache.pop(known, None)
        if _finder not in sys.path_hooks:
            sys.path_hooks.insert(0, _finder)


def _run(script: Path) -> ModuleType:
    name = f"layerwise_script_{script.stem}"
    if script.suffix != ".py":
        raise UsageError(f"script {shown(str(script))} is not a .py file")
    spec = importlib.util.spec_from_file_location(name, script, loader=_FromSource(name, str(script)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _importable(script.parent)
    sys.modules[module.__name__] = module
    with script_errors(script, f"script {script.name}"):
        spec.loader.exec_module(module)
    return module


def call_script(text: str, default: str, *arguments: Any) -> Any:
    """Call the function that `file.py:function` names (`default` without a function). Raises like `load_function`."""
    path, colon, name = text.partition(".py:")
    script = Path(f"{path}.py" if colon else path)
    function = load_function(script, name or default)
    with script_errors(script.absolute(), f"{name or default}()"):
        return function(*arguments)
