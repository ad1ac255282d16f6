"""Importing this imports all that layerwise may import, which a process does before others are forked from it."""

import importlib
import pkgutil
from contextlib import suppress

LIBRARIES = ("onnx", "onnxruntime", "textual.app", "textual.drivers.linux_driver")

for library in LIBRARIES:
    importlib.import_module(library)
for module in pkgutil.walk_packages(importlib.import_module("layerwise").__path__, "layerwise."):
    if not module.name.endswith("__main__"):
        with suppress(Exception):  # whoever needs it is told
            importlib.import_module(module.name)
