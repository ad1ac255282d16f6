"""INT8 calibration on 10: batches are pulled from the calibrator, ranges measured by onnxruntime, the cache written."""

import ctypes
import struct
from typing import Any

import numpy as np
import onnx
import onnxruntime

from ._recording import api
from ._types import numpy_of


def calibrate(network: Any, config: Any, model: onnx.ModelProto, profiles: list[dict[str, Any]]) -> dict[str, float]:
    """The scale of every tensor in the calibrator's cache; without a cache it is made of batches and handed over."""
    calibrator = config._values.get("int8_calibrator")
    if calibrator is None or not config._has("INT8"):
        return {}
    calibrator.get_batch_size()
    if any(base.__name__ == "IInt8LegacyCalibrator" for base in type(calibrator).__mro__):
        config._values["legacy_calibration"] = [calibrator.get_quantile(), calibrator.get_regression_cutoff()]
        calibrator.write_histogram_cache(0, 0 if calibrator.read_histogram_cache(0) is None else 1)
    cache = calibrator.read_calibration_cache()
    if cache is None or not bytes(cache):
        given = getattr(config, "_calibration_profile", None)
        shapes = given._shapes if given is not None else profiles[0]["shapes"]
        ranges = _ranges(network, calibrator, model, shapes)
        cache = _text(type(calibrator), ranges)
        calibrator.write_calibration_cache(memoryview(cache))
    return _scales(bytes(cache).decode())


def _scales(cache: str) -> dict[str, float]:
    """Read the text of a calibration cache."""
    pairs = [line.rpartition(": ") for line in cache.splitlines()[1:]]
    return {name: float(struct.unpack(">f", bytes.fromhex(number))[0]) for name, _colon, number in pairs}


def _ranges(network: Any, calibrator: Any, model: onnx.ModelProto, shapes: dict[str, Any]) -> dict[str, float]:
    names = [tensor._name for tensor in network._inputs]
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    known = {value.name for value in watched.graph.output}
    tensors = [t for layer in network._layers for t in layer.outputs if t._typed()[0].name == "FLOAT"]
    watched.graph.output.extend(onnx.ValueInfoProto(name=t._id) for t in tensors if t._id not in known)
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    found: dict[str, float] = {}
    while (batch := calibrator.get_batch(names)) is not None and len(batch):
        feeds = {t._name: _read(int(address), t, shapes) for t, address in zip(network._inputs, batch, strict=True)}
        outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))
        for name, array in {**feeds, **outputs}.items():
            if array.dtype.kind == "f" and array.size:
                found[name] = max(found.get(name, 0.0), float(np.abs(array).max()))
    return found


def _read(address: int, tensor: Any, shapes: dict[str, Any]) -> Any:
    kind, shape = tensor._typed()
    shape = tuple(shapes[tensor._name][1]) if tensor._name in shapes else shape
    count = int(np.prod(shape, dtype=np.int64))
    data = ctypes.string_at(address, count * numpy_of(kind).itemsize)
    return np.frombuffer(data, numpy_of(kind)).reshape(shape)


def _text(kind: type, ranges: dict[str, float]) -> bytes:
    """TensorRT's format: a title, then `name: scale` with the scale as the hexadecimal of a big-endian float32."""
    names = [base.__name__ for base in kind.__mro__]
    algorithm = "MinMaxCalibration" if "IInt8MinMaxCalibrator" in names else "EntropyCalibration2"
    number = "".join(part.zfill(2) for part in api()["version"].split(".")[:3]).lstrip("0")
    lines = [f"TRT-{number}-{algorithm}"]
    lines += [f"{name}: {struct.pack('>f', value / 127).hex()}" for name, value in ranges.items()]
    return ("\n".join(lines) + "\n").encode()
