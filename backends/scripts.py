"""Runs functions of a user's Python script, with errors that point to the script's own lines.

Only done in a worker process. The script's folder stays on `sys.path` for later imports.
"""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.files import read_file
from layerwise._tool.backends.text import shown

_MOST = 4 << 20  # bytes of a script; the parser takes hundreds of times as many


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


def _run(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"layerwise_script_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise UsageError(f"script {shown(str(script))} is not a .py file")
    module = importlib.util.module_from_spec(spec)
    if str(script.parent) not in sys.path:
        sys.path.insert(0, str(script.parent))
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
