"""Modules that are imported when they are used, and objects of scripts."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from layerwise import config
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.text import shown_lines
from layerwise.logger import G_LOGGER, LogMode
from layerwise.mod.util import version as parsed

__all__ = ["LATEST_VERSION", "autoinstall", "import_from_script", "lazy_import"]

LATEST_VERSION = "==latest"
"""In a requirement of `lazy_import`: any version will do."""
_COMPARED = {
    "==": lambda a, b: a == b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}  # fmt: skip


class LazyModule:
    """A module that is imported when one of its attributes is first used or set."""

    def __init__(self, name: str, requirement: str, requires: Sequence[str], log: bool, package: str) -> None:
        super().__setattr__("module", None)
        super().__setattr__("_about", (name, requirement, requires, log, package))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._imported(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._imported(), name, value)

    def is_installed(self) -> bool:
        """Whether it is imported already, or can be found."""
        name = self._about[0]
        try:
            return name in sys.modules or importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            return False

    def is_importable(self) -> bool:
        """Whether importing it works."""
        try:
            importlib.import_module(self._about[0])
        except Exception:  # a broken package raises anything
            return False
        return True

    def _imported(self) -> ModuleType:
        if self.module is None:
            super().__setattr__("module", _import(*self._about))
        module: ModuleType = self.module
        return module


def lazy_import(
    name: str,
    log: bool | None = None,
    pkg_name: str | None = None,
    install_flags: Sequence[str] | None = None,
    requires: Sequence[str] | None = None,
) -> Any:
    """A module that is imported on first use, such as lazy_import("onnx>=1.8.1").

    MissingDependency then names what to install; another version than asked for is a logged error, no more. requires:
    other modules, with versions, that it needs. pkg_name: what it is installed as. install_flags has no effect, as
    nothing is installed.
    """
    plain, requirement = _requirement(name)
    return LazyModule(plain, requirement, requires or [], log is not False, pkg_name or plain.partition(".")[0])


def autoinstall(lazy_mod: Any) -> None:
    """Does nothing: packages are installed by whoever owns the environment."""


def import_from_script(path: str, name: str) -> Any:
    """The object `name` of a Python file, which is run anew each time. PolygraphyException says why there is none."""
    script = Path(path)
    sys.path.insert(0, str(script.parent))
    try:
        importlib.invalidate_caches()
        return getattr(importlib.import_module(script.stem), name)
    except Exception as error:
        hint = "" if script.suffix == ".py" else f" (the extension is {script.suffix!r}, not '.py')"
        told = f"Could not import symbol: {name} from script: {path}{hint}\nNote: Error was: {error}"
        G_LOGGER.critical(shown_lines(told, 2000), ExceptionType=LayerwiseError)
    finally:
        del sys.path[0]
        sys.modules.pop(script.stem, None)


def _requirement(text: str) -> tuple[str, str]:
    at = min((text.index(char) for char in "=<>" if char in text), default=len(text))
    return text[:at], text[at:]


def _import(name: str, requirement: str, requires: Sequence[str], log: bool, package: str) -> ModuleType:
    try:
        found = importlib.import_module(name)
        needed = [(each, importlib.import_module(each), wanted) for each, wanted in map(_requirement, requires)]
    except ImportError as error:
        command = " ".join([*config.INSTALL_CMD, package])
        raise MissingDependency(
            f"Module: '{name}' is required but could not be imported: {error}; install it: {command}"
        ) from error
    for each, module, wanted in (*needed, (name, found, requirement)):
        _check_version(each, module, wanted)
    if log:
        G_LOGGER.module_info(found)
    return found


def _check_version(name: str, module: ModuleType, wanted: str) -> None:
    there = getattr(module, "__version__", None)
    if not wanted or wanted == LATEST_VERSION or there is None:
        return
    bare = wanted.lstrip("<=>").strip()
    if not _COMPARED[wanted.removesuffix(bare).strip()](parsed(there), parsed(bare)):
        G_LOGGER.error(
            f"Module: '{name}' version '{there}' is installed, but version '{wanted}' is required. It is used all the "
            "same; this may cause errors.", LogMode.ONCE,
        )  # fmt: skip
