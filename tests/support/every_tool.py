"""Importing this imports the real Polygraphy, which a process does before its command lines are forked from it."""

import importlib
import pkgutil
from contextlib import suppress

from support.one_tool import main

for library in ("onnx", "onnx_graphsurgeon", "onnxruntime"):
    importlib.import_module(library)
for package in ("tools", "backend.onnx", "backend.onnxrt", "backend.pluginref", "comparator", "json"):
    found = importlib.import_module(f"polygraphy.{package}")
    for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
        with suppress(Exception):  # whoever needs it is told
            importlib.import_module(module.name)

__all__ = ["main"]
