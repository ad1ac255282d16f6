"""Quantised forms of float models: onnxruntime's quantisers, its kernel for blocks, Q/DQ as Model Optimizer's."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
Feed = Mapping[str, Array]
_BLOCK = 32


def _reader(feed: Feed) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """The one feed."""

        def __init__(self) -> None:
            self._left = [dict(feed)]

        def get_next(self) -> dict[str, Array] | None:
            return self._left.pop() if self._left else None

    return Reader()


def _by_file(model: onnx.ModelProto, make: Callable[[str, str], None]) -> onnx.ModelProto:
    """A model that a function makes of a file, written to another one."""
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = (str(Path(folder) / name) for name in ("float.onnx", "quantised.onnx"))
            onnx.save(model, source)
            make(source, target)
            return onnx.load(target)
    finally:
        logging.getLogger().setLevel(level)


def static(model: onnx.ModelProto, feed: Feed, *, qdq: bool, per_channel: bool = False, **more: Any) -> onnx.ModelProto:
    """onnxruntime's static quantisation, calibrated on the one feed."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    more.setdefault("nodes_to_exclude", _masked(model, feed))
    form = QuantFormat.QDQ if qdq else QuantFormat.QOperator
    more.setdefault("activation_type", QuantType.QUInt8)
    more.setdefault("weight_type", QuantType.QInt8)

    def make(source: str, target: str) -> None:
        quantize_static(source, target, _reader(feed), quant_format=form, per_channel=per_channel, **more)

    return _by_file(model, make)


def _masked(model: onnx.ModelProto, feed: Feed) -> list[str]:
    """Nodes that make or read a mask's values, which users leave out: 8 bits have no room for others beside them."""
    from support.faults.running import all_tensors

    tensors = all_tensors(model, dict(feed))
    far = {name for name, array in tensors.items() if array.dtype.kind == "f" and np.abs(array).max(initial=0) >= 1e4}
    return [node.name for node in model.graph.node if far & {*node.input, *node.output}]


def dynamic(
    model: onnx.ModelProto, *, per_channel: bool = False, unsigned: bool = False, **more: Any
) -> onnx.ModelProto:
    """onnxruntime's dynamic quantisation. unsigned: weights in uint8."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    kind = QuantType.QUInt8 if unsigned else QuantType.QInt8
    return _by_file(
        model,
        lambda source, target: quantize_dynamic(source, target, per_channel=per_channel, weight_type=kind, **more),
    )


def nbits(
    model: onnx.ModelProto, *, symmetric: bool = True, bits: int = 4, block: int = _BLOCK
) -> onnx.ModelProto:  # fmt: skip
    """The model with the weights of MatMul in blocks of few bits (2, 4, 8), as onnxruntime's kernel packs them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in copy.graph.initializer}
    for node in copy.graph.node:
        if node.op_type == "MatMul" and node.input[1] in weights and len(weights[node.input[1]].dims) == 2:
            weight = numpy_helper.to_array(weights[node.input[1]]).astype(np.float32)
            _pack(copy, node, weight, symmetric, bits, block)
    copy.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return copy


def _pack(
    model: onnx.ModelProto, node: onnx.NodeProto, weight: Array, symmetric: bool, bits: int, block: int
) -> None:  # fmt: skip
    from onnxruntime.capi import _pybind_state

    (k, n), name = weight.shape, node.input[1]
    blocks, quantise = -(-k // block), getattr(_pybind_state, f"quantize_matmul_{bits}bits")
    packed = np.zeros((n, blocks, block * bits // 8), np.uint8)
    scales, zeros = np.zeros(n * blocks, np.float32), np.zeros(n * -(-blocks * bits // 8), np.uint8)
    quantise(packed, np.ascontiguousarray(weight), scales, zeros, block, n, k, symmetric)
    parts = {"_Q4": packed, "_scales": scales.reshape(n, blocks)}
    parts |= {} if symmetric else {"_zero_points": zeros.reshape(n, -1)}
    for end, array in parts.items():
        if name + end not in {tensor.name for tensor in model.graph.initializer}:
            model.graph.initializer.append(numpy_helper.from_array(array, name + end))
    made = helper.make_node("MatMulNBits", [node.input[0], *(name + end for end in parts)], node.output, node.name,
                            domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)  # fmt: skip
    node.CopyFrom(made)


def modelopt(model: onnx.ModelProto, feed: Feed, *, fp8: bool = False) -> onnx.ModelProto:
    """Q/DQ before products as NVIDIA Model Optimizer exports it: symmetric, weights in FP32 before their Q and DQ."""
    from support.faults.running import all_tensors

    seen, copy = all_tensors(model, dict(feed)), onnx.ModelProto()
    seen.update(feed)
    copy.CopyFrom(model)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kind, most = (TensorProto.FLOAT8E4M3FN, 448.0) if fp8 else (TensorProto.INT8, 127.0)
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        if node.op_type in ("MatMul", "Gemm", *([] if fp8 else ["Conv"])):  # onnxruntime fuses no Conv in FP8
            for slot in (0, 1):
                name = node.input[slot]
                array = weights.get(name, seen.get(name))
                if array is not None and array.dtype == np.float32 and array.ndim > 1:
                    axis = _axis(node, slot) if name in weights and not fp8 else None
                    nodes += _pair(node, slot, array, axis, (kind, most))
        nodes.append(node)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return onnx.version_converter.convert_version(copy, 19) if fp8 else copy


def _axis(node: onnx.NodeProto, slot: int) -> int:
    if node.op_type == "Conv":
        return 0
    turned = any(a.name == ("transB" if slot else "transA") and a.i for a in node.attribute)
    return 0 if turned else 1


def _pair(
    node: onnx.NodeProto, slot: int, array: Array, axis: int | None, kind: tuple[int, float]
) -> Iterator[onnx.NodeProto]:
    name, others = node.input[slot], tuple(i for i in range(array.ndim) if i != axis)
    largest = np.abs(array).max(axis=others) if axis is not None else np.abs(array).max()
    scale = np.maximum(np.asarray(largest / kind[1], np.float32), np.float32(1e-8))
    stem = f"{node.name or node.output[0]}.{slot}"
    zero = helper.make_tensor(f"{stem}.zero", kind[0], scale.shape, np.zeros(scale.size).tolist())
    yield helper.make_node("Constant", [], [f"{stem}.scale"], f"{stem}.Constant", value=numpy_helper.from_array(scale))
    yield helper.make_node("Constant", [], [f"{stem}.zero"], f"{stem}.Constant_1", value=zero)
    more = {} if axis is None else {"axis": axis}
    reads = [f"{stem}.scale", f"{stem}.zero"]
    yield helper.make_node("QuantizeLinear", [name, *reads], [f"{stem}.q"], f"{stem}.QuantizeLinear", **more)
    yield helper.make_node(
        "DequantizeLinear", [f"{stem}.q", *reads], [f"{stem}.dq"], f"{stem}.DequantizeLinear", **more
    )
    node.input[slot] = f"{stem}.dq"


def _typed(activation: str, weight: str, **more: Any) -> Callable[[onnx.ModelProto, Feed], onnx.ModelProto]:
    """Static quantisation with these types. more: as `static` takes it."""

    def made(model: onnx.ModelProto, feed: Feed) -> onnx.ModelProto:
        from onnxruntime.quantization import QuantType

        kinds = {"activation_type": QuantType[activation], "weight_type": QuantType[weight]}
        return static(model, feed, **kinds, **more)

    return made


def bnb4(model: onnx.ModelProto, *, quant_type: int = 1, block: int = _BLOCK) -> onnx.ModelProto:
    """The weights of MatMul in bitsandbytes' NF4 (1) or FP4 (0), by onnxruntime's quantiser."""
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    quantiser = MatMulBnb4Quantizer(copy, quant_type, block)
    quantiser.process()
    made: onnx.ModelProto = quantiser.model.model
    return made


_SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}
_LOPSIDED = {"ActivationSymmetric": False, "WeightSymmetric": False}
FORMS: dict[str, Callable[[onnx.ModelProto, Feed], onnx.ModelProto]] = {
    "qdq": lambda model, feed: static(model, feed, qdq=True, per_channel=True),
    "qoperator": lambda model, feed: static(model, feed, qdq=False),
    "dynamic": lambda model, feed: dynamic(model, per_channel=True),
    "nbits": lambda model, feed: nbits(model),
    "nbits_zero": lambda model, feed: nbits(model, symmetric=False),
    "modelopt": modelopt,
    "fp8": lambda model, feed: modelopt(model, feed, fp8=True),
    "qdq_s8s8": _typed("QInt8", "QInt8", qdq=True, extra_options=_SYMMETRIC),
    "qdq_u8u8": _typed("QUInt8", "QUInt8", qdq=True, per_channel=True, extra_options=_LOPSIDED),
    "qdq_u16s8": _typed("QUInt16", "QInt8", qdq=True, per_channel=True),
    "qop_channel": _typed("QUInt8", "QInt8", qdq=False, per_channel=True, reduce_range=True),
    "qop_s8s8": _typed("QInt8", "QInt8", qdq=False, extra_options=_SYMMETRIC),
    "dynamic_7": lambda model, feed: dynamic(model, per_channel=True, reduce_range=True),
    "dynamic_u8": lambda model, feed: dynamic(model, unsigned=True),
    "bnb4": lambda model, feed: bnb4(model),
    "bnb4_fp4": lambda model, feed: bnb4(model, quant_type=0, block=64),
    "nbits_2": lambda model, feed: nbits(model, bits=2),
    "nbits_8": lambda model, feed: nbits(model, symmetric=False, bits=8, block=64),
}
"""By name: how a float model is quantised, with a feed to calibrate on."""
