"""An expression or a script evaluated with the names of Polygraphy and with those of Layerwise."""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

PACKAGES = ("polygraphy", "layerwise")
_MODULES = (
    "backend.base", "backend.common", "backend.onnx", "backend.onnxrt", "backend.pluginref", "comparator", "common",
    "config", "constants", "cuda", "datatype", "exception", "func", "json", "logger", "mod", "util",
)  # fmt: skip
_MORE = {
    "array": "util.array", "onnx_util": "backend.onnx.util", "onnx_loader": "backend.onnx.loader",
    "comp_util": "comparator.util", "comp_struct": "comparator.struct", "loading": "comparator.data_loader",
    "comparing": "comparator.compare", "serde": "json.serde", "interface": "common.interface",
    "references": "backend.pluginref.references", "utilities": "util.util", "logging": "logger.logger",
}  # fmt: skip


@cache
def _names(package: str) -> dict[str, Any]:
    found: dict[str, Any] = {"np": np}
    for module in _MODULES:
        there = importlib.import_module(f"{package}.{module}")
        found |= {name: value for name, value in vars(there).items() if not name.startswith("_")}
    found |= {module.rpartition(".")[2]: importlib.import_module(f"{package}.{module}")
              for module in ("util", "mod", "config", "constants", "cuda", "func", "json")}  # fmt: skip
    found |= {name: importlib.import_module(f"{package}.{module}") for name, module in _MORE.items()}
    return found


def outcome(package: str, source: str, **given: Any) -> Any:
    """What an expression gives, or the last line of a script, as plain Python; errors by the class that is caught.

    Names of the package's documented modules are there, those in `_MORE` for submodules, and `given`.
    """
    names = {**_names(package), **given}
    *lines, last = source.strip().split("\n")
    try:
        with names["G_LOGGER"].verbosity(60):
            exec("\n".join(lines), names)
            return plain(eval(last.strip(), names))  # noqa: S307 (a test's own text)
    except Exception as error:
        return "raises", _caught(package, error)


def message(package: str, source: str, **given: Any) -> str:
    """The message of the error that an expression raises; "" if it raises none."""
    names = {**_names(package), **given}
    *lines, last = source.strip().split("\n")
    try:
        with names["G_LOGGER"].verbosity(60):
            exec("\n".join(lines), names)
            eval(last.strip(), names)  # noqa: S307 (a test's own text)
    except Exception as error:
        return str(error)
    return ""


def _caught(package: str, error: Exception) -> str:
    there = _names(package)
    for name in ("DataTypeConversionException", "PolygraphyException", "PolygraphyInternalException"):
        if isinstance(error, there[name]):
            return name
    return type(error).__name__


def plain(value: Any) -> Any:
    """A value without classes of either package."""
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), list(value.shape), plain(value.tolist())]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return "nan" if value != value else round(value, 6) if abs(value) < 1e6 else float(f"{value:.6g}")
    if isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "items")):
        return [[plain(key), plain(each)] for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple) or hasattr(value, "__next__"):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | str | bytes) else f"{type(value).__name__}: {value}"
