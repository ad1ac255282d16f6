"""The public names of a Python package, module by module, with signatures: read from the package that is installed."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

DOCUMENTED = (
    "backend.base", "backend.common", "backend.onnx", "backend.onnxrt", "backend.trt", "backend.pluginref",
    "backend.tf",
    "comparator", "common", "config", "constants", "cuda", "datatype", "exception", "func", "json", "logger", "mod",
    "util",
)  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A public name: module (without the package), the name, and of a class's member the member's name."""

    module: str
    name: str
    member: str = ""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.module, self.name, self.member)))

    def of(self, package: str) -> Any:
        """The object in a package. AttributeError or ImportError if there is none."""
        found = getattr(importlib.import_module(f"{package}.{self.module}"), self.name)
        return getattr(found, self.member) if self.member else found


def modules(package: str) -> Iterator[str]:
    """The documented modules of a package, with all their submodules."""
    for name in DOCUMENTED:
        yield name
        found = importlib.import_module(f"{package}.{name}")
        for entry in pkgutil.iter_modules(getattr(found, "__path__", [])):
            yield f"{name}.{entry.name}"


def names(package: str) -> Iterator[Name]:
    """Every public name of the documented modules, and every public member of the classes among them."""
    for module in modules(package):
        found = importlib.import_module(f"{package}.{module}")
        for name, value in sorted(vars(found).items()):
            if _is_public(package, found, name, value):
                yield Name(module, name)
                if inspect.isclass(value):
                    yield from (Name(module, name, member) for member in _members(value))


def _is_public(package: str, module: ModuleType, name: str, value: Any) -> bool:
    if name.startswith("_") or isinstance(value, ModuleType) or type(value).__name__ == "LazyModule":
        return False
    if name in getattr(module, "__all__", ()) or getattr(value, "__module__", None) == module.__name__:
        return True
    if hasattr(module, "__path__"):  # what a package offers of its submodules
        home = getattr(value, "__module__", None) or ""
        inner = (
            importlib.import_module(f"{module.__name__}.{each.name}") for each in pkgutil.iter_modules(module.__path__)
        )
        return home.startswith(f"{module.__name__}.") or any(name in getattr(each, "__all__", ()) for each in inner)
    return name.isupper() and getattr(type(value), "__module__", "") in ("builtins", module.__name__)


def _members(value: type) -> list[str]:
    own = {name for base in value.__mro__ if base.__module__ not in ("builtins", "abc", "enum", "json.encoder")
           for name in vars(base)}  # fmt: skip
    return sorted(name for name in own if not name.startswith("_") or name in ("__init__", "__call__", "__getitem__"))


def parameters(value: Any) -> list[inspect.Parameter] | None:
    """The parameters of a callable; None of anything else, and where Python cannot tell."""
    if not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters
        hidden = hasattr(value, "__wrapped__") and not found  # a decorator's own parameters, not those of a call
        return None if hidden else list(found.values())
    except (TypeError, ValueError):
        return None
