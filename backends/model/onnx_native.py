"""onnx's compiled extension without the rest of the package, whose import takes 0.2 s and also imports NumPy."""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.limits.forked import Died, Raised, done_aside
from layerwise._tool.backends.model.expansion import check_functions
from layerwise._tool.backends.sizes import binary_size

_ROOM, _ROOM_PER_BYTE = 256 << 20, 24  # of working memory, in addition to what is already held
_COUNTS = (b"num_outputs", b"num_scan_inputs")  # attributes by which a number in the model becomes a list
_NAME = "onnx.onnx_cpp2py_export"


class NoRoom(LayerwiseError):
    """Inference would take far more memory than the model's size suggests."""


def infer_shapes(model: bytes, *, check_type: bool = False, strict: bool = False, values: bool = True) -> bytes:
    """Return the serialised ModelProto with the types and shapes that onnx infers.

    values: also propagate constants that determine shapes, in a fork. Raises what onnx raises: its own InferenceError,
    RuntimeError, ValueError; NoRoom, mostly for a long vector whose elements each become an object; LayerwiseError
    for functions like `check_functions`.
    """
    check_functions(model)
    most = _ROOM + _ROOM_PER_BYTE * len(model)
    native = _native().shape_inference

    def work() -> bytes:
        return bytes(native.infer_shapes(model, check_type, strict, values))

    if not values and not any(name in model for name in _COUNTS):
        return work()
    try:
        return done_aside(work, most)
    except Died:
        text = f"inferring shapes takes more than {binary_size(most)}: a tensor that shapes are made of is too long"
        raise NoRoom(text) from None
    except Raised as error:
        kinds = {"InferenceError": native.InferenceError, "ValueError": ValueError}
        raise kinds.get(error.kind, RuntimeError)(str(error)) from None


def infer_what_fits(model: bytes) -> tuple[bytes, str]:
    """Return what `infer_shapes` returns, and ""; or, if that takes too much memory, the result without values, and
    the reason. Raises like it.
    """
    try:
        return infer_shapes(model), ""
    except NoRoom as error:
        return infer_shapes(model, values=False), str(error)


def _native() -> Any:
    """Load the extension module under its own name, so that a later `import onnx` finds it."""
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
