"""One execution: feeds, results, debug tensors, allocators, profiler."""

import ctypes
import time
from typing import Any

import numpy as np
import onnxruntime

from . import _clock
from ._arguments import CLASSES
from ._callbacks import call
from ._types import dtype_of, dtype_of_onnx, numpy_of, onnx_of
from ._values import dims


def run(context: Any, stream: int) -> bool:
    """Run once; False with the reason logged where the model fails."""
    engine = context._engine
    watched = _watched(context)
    session = engine._session(tuple(watched.values()))
    feeds = {entry["name"]: _feed(context._read(entry), entry["dtype"]) for entry in context._inputs()}
    started = time.perf_counter()
    try:
        outputs = session.run_with_ort_values(None, feeds)
    except Exception as error:  # onnxruntime's own exception types are not public
        return bool(context._fail(f"execution failed: {error}"))
    context._pending = (time.perf_counter() - started) * 1000
    if (ms := _clock.told(engine._plan.header)) is not None:
        _clock.move(ms)
        context._pending = ms
    found = {output.name: _array(value) for output, value in zip(session.get_outputs(), outputs, strict=True)}
    for shown, inner in watched.items():
        _tell(context, shown, found[inner], stream)
    if not all(_write(context, entry["name"], found[entry["name"]], stream) for entry in context._outputs()):
        return bool(context._fail("an output allocator gave no memory"))
    if context._values.get("enqueue_emits_profile"):
        profile(context)
    return True


def _feed(array: Any, kind: str) -> Any:
    """An array, of a type that numpy lacks too, as onnxruntime takes it."""
    element = onnx_of(getattr(CLASSES["DataType"], kind))
    carrier = array.view(f"u{array.itemsize}") if array.dtype.kind == "V" else array
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.asarray(carrier, order="C"), element)


def _array(value: Any) -> Any:
    """A copy of a result, its type by onnxruntime's number for it."""
    shape, kind = value.shape(), numpy_of(dtype_of_onnx(value.element_type()))
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, kind).reshape(shape)


def _watched(context: Any) -> dict[str, str]:
    """Debug tensors that are on, and their inner names."""
    if context._listener is None:
        return {}
    header = context._engine._plan.header
    watched = {shown: inner for shown, inner in header["debug"] if shown in context._debug}
    if header["unfused"] and context._values.get("unfused_tensors_debug_state"):
        names = [name for layer in header["layers"] for name, _kind, _shape in layer["outputs"]]
        watched |= {header["internal"].get(name, name): name for name in names}
    return watched


def _tell(context: Any, name: str, array: Any, stream: int) -> None:
    location: Any = CLASSES["TensorLocation"]
    facts = (_capsule(array.ctypes.data), location.HOST, dtype_of(array.dtype), dims(array.shape), name, stream)
    call("processDebugTensor", context._listener.process_debug_tensor, *facts)


def _capsule(address: int) -> Any:
    """A `void const*` as the bindings give it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


def _write(context: Any, name: str, array: Any, stream: int) -> bool:
    """Copy an output to its address, or to where its allocator says; False where that says nowhere."""
    allocator = context._allocators.get(name)
    address = context._addresses.get(name, 0)
    if allocator is not None:
        asynchronous = getattr(allocator, "reallocate_output_async", None)
        size = max(1, array.nbytes)
        if asynchronous is not None:
            address = call("reallocateOutputAsync", asynchronous, name, address, size, 256, stream)
        else:
            address = call("reallocateOutput", allocator.reallocate_output, name, address, size, 256)
        call("notifyShape", allocator.notify_shape, name, dims(array.shape))
    if array.nbytes and address:
        ctypes.memmove(int(address), array.ctypes.data, array.nbytes)
    return bool(address)


def profile(context: Any) -> bool:
    """Report the last run's time, shared out over the layers as their tactics were timed."""
    profiler, layers = context._values.get("profiler"), context._engine._plan.header["layers"]
    if profiler is None or context._pending is None:
        return False
    whole = sum(layer["ms"] for layer in layers) or 1.0
    for layer in layers:
        call("reportLayerTime", profiler.report_layer_time, layer["name"], context._pending * layer["ms"] / whole)
    context._pending = None
    return True
