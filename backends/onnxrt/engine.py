"""Imports onnxruntime, or says what to install: who needs the package takes it from here."""

from layerwise._tool.backends.errors import MissingPackage
from layerwise._tool.backends.installed import doubled, install_line, require

onnxruntime = require("onnxruntime", "running a model")
if not hasattr(onnxruntime, "InferenceSession"):  # one of two installed ones was removed, and took files of the other
    raise MissingPackage(f"files of onnxruntime are missing: {doubled() or install_line('onnxruntime')}")
