"""A stand-in for `tensorrt`: only names that the real bindings were recorded to have, run by onnxruntime on the CPU.

LAYERWISE_FAKE_TRT=10 or 11 picks the version (11 otherwise).
"""

import builtins as _builtins
from importlib import import_module as _load
from typing import Any as _Any

from . import _arguments, _classes, _layers, _plugins, _recording, _types

_parts = "values network parser config builder engine runtime context inspect refit interfaces"
for _part in _parts.split():
    _load(f"._{_part}", __name__)

__version__ = _recording.api()["version"]

_layers.share(_recording.api()["classes"])
globals().update({_name: _cls for _name, _cls in _classes.create().items() if "." not in _name})
_constants = {_name: _text.rpartition(".") for _name, _text in _recording.api()["constants"].items()}
globals().update(
    {
        _name: _builtins.getattr(_arguments.CLASSES[_owner], _member)
        for _name, (_owner, _dot, _member) in _constants.items()
        if _owner in _arguments.CLASSES
    }
)

common_enter, common_exit = _classes.common_enter, _classes.common_exit


def get_plugin_registry() -> _Any:
    """The registry of the process."""
    return _plugins.registry()


def get_builder_plugin_registry(*args: _Any, **kwargs: _Any) -> _Any:
    """The registry for a capability: the same."""
    taken = [_recording.signature(text) for text in _recording.api()["functions"]["get_builder_plugin_registry"]]
    _arguments.resolve("get_builder_plugin_registry", taken, args, kwargs)
    return _plugins.registry()


def get_nv_onnx_parser_version() -> int:
    """The parser's version as one number."""
    major, minor, patch = (int(part) for part in __version__.split(".")[:3])
    return major * 10000 + minor * 100 + patch


def init_libnvinfer_plugins(logger: _Any, namespace: str) -> _Any:
    """No plugins are shipped with the fake: True."""
    return True


def volume(iterable: _Any) -> int:
    """The product of the extents."""
    found = 1
    for size in iterable:
        found *= size
    return found


def nptype(trt_type: _Any) -> _Any:
    """The numpy type of a DataType.

    Raises:
        TypeError: numpy has none.
    """
    if trt_type.name in ("FP8", "BF16", "INT4", "FP4", "E8M0"):
        raise TypeError("Could not resolve TensorRT datatype to an equivalent numpy datatype.")
    return _types.numpy_of(trt_type).type
