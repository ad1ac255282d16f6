"""onnx's compiled part without the rest of the package, whose import takes a fifth of a second and NumPy along."""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

_NAME = "onnx.onnx_cpp2py_export"


def infer_shapes(model: bytes) -> bytes:
    """Return the serialised ModelProto with the types and shapes that onnx infers, constants followed.

    Raises what onnx raises: its own InferenceError, RuntimeError, ValueError.
    """
    inferred: bytes = _native().shape_inference.infer_shapes(model, False, False, True)
    return inferred


def _native() -> Any:
    """The extension module; under its own name, so that `import onnx` finds it if it comes later."""
    if _NAME not in sys.modules:
        package = find_spec("onnx")
        folders = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec(_NAME, folders)
        if spec is None or spec.loader is None:
            raise ImportError("the onnx package has no compiled part", name=_NAME)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.setdefault(_NAME, module)
    return sys.modules[_NAME]
