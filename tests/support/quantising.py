"""Fake quantisation beside ONNX's own operators and ml_dtypes' casts, for tests and `python -m benchmarks.lens`."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.surgery.quantise.arithmetic import fake_nodes
from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import FORMATS, Format
from layerwise._tool.surgery.quantise.numeric import (
    Floats,
    Scale,
    blocked,
    cast,
    dtype_of,
    fake,
    mx_scale,
    nv_scale,
    nv_tensor_scale,
    unblocked,
)

ONNX_TYPES = {
    "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8,
    "int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "fp8e4m3": TensorProto.FLOAT8E4M3FN,
    "fp8e5m2": TensorProto.FLOAT8E5M2, "mxfp8": TensorProto.FLOAT8E4M3FN, "mxfp4": TensorProto.FLOAT4E2M1,
    "nvfp4": TensorProto.FLOAT4E2M1,
}  # fmt: skip
ONNX_BEFORE_1_23 = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 23)
"""Its QuantizeLinear to FP4 adds a zero point of 0 to -0.0, which makes it 0.0."""


def awkward(count: int, form: Format, scale: float = 1.0, seed: int = 0) -> Floats:
    """`count` values: of all exponents, on and beside what the format holds and the middles between, subnormals, both
    zeros, and what is too large.
    """
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, count // 2, dtype=np.uint64).astype(np.uint32)
    anything = bits.view(np.float32)
    if form.kind == "integer":
        held = np.arange(form.least - 3, form.most + 4, dtype=np.float32)
    else:
        dtype = dtype_of(form.element)
        codes = np.arange(1 << min(16, 8 * dtype.itemsize), dtype=np.uint16).astype(f"u{dtype.itemsize}")
        codes = codes[codes < 16] if "float4" in form.element else codes
        held = codes.view(dtype).astype(np.float32)
    held = np.unique(held[np.isfinite(held)])
    ties = held[1:] / 2 + held[:-1] / 2 if form.kind == "half" else (held[1:] + held[:-1]) / 2
    beside = [np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf)]
    points = np.concatenate([held, ties, *beside,
                             [0.0, -0.0, 1e-45, -1e-45, 1e-39, 3e38, -3e38]]).astype(np.float32)  # fmt: skip
    usual = rng.standard_normal(count).astype(np.float32) * np.float32(held.max() / 4)
    with np.errstate(over="ignore"):
        values = np.concatenate([points * np.float32(scale), anything, usual * np.float32(scale)])
    values = values[np.isfinite(values)]
    return np.resize(values, max(count, points.size)).astype(np.float32)


def by_onnx(values: Floats, form: Format, scale: Floats, zero: Floats, block: int = 0) -> Floats:
    """What onnx's reference operators make of it. scale: that broadcasts with the values (or a row's, with `block`)."""
    to = ONNX_TYPES[form.name]
    if form.kind == "half":
        nodes = [helper.make_node("Cast", ["x"], ["q"], to=to), helper.make_node("Cast", ["q"], ["y"], to=1)]
        weights = []
    else:
        stored = helper.tensor_dtype_to_np_dtype(to)
        more = {"axis": 1, "block_size": block} if block else {}
        own, typed = (["z"], {}) if form.kind == "integer" else ([], {"output_dtype": to})
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", *own], ["q"], **more, **typed),
                 helper.make_node("DequantizeLinear", ["q", "s", *own], ["y"], **more)]  # fmt: skip
        weights = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero.astype(stored), "z")]
    return np.asarray(ReferenceEvaluator(_model(nodes, weights)).run(None, {"x": values})[0])


def by_nodes(values: Floats, form: Format, scale: Scale | None, axis: int = -1, *, known: bool = False) -> Floats:
    """What the nodes of the switchboard make of it, in onnxruntime. known: lengths are known before."""
    made = Emitter("f", 17)
    names = ("", "") if scale is None else (made.array(scale.scale), made.array(scale.zero))
    result = fake_nodes(made, "x", form, *names, axis=axis, dims=values.shape if known else [None] * values.ndim)
    model = _model([*made.nodes, helper.make_node("Identity", [result], ["y"])], made.constants, opset=17)
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(data=model.SerializeToString())) as runner:
        return runner.infer({"x": values}).outputs["y"]


def _model(nodes: list[Any], weights: list[Any], opset: int = 24) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, None)],
                              [helper.make_tensor_value_info("y", 1, None)], weights)  # fmt: skip
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def differing(a: Floats, b: NDArray[Any]) -> int:
    """How many values differ in a bit; not-a-numbers are alike."""
    bits = np.ascontiguousarray(a).view(np.uint32) != np.ascontiguousarray(b.astype(np.float32)).view(np.uint32)
    return int((bits & ~(np.isnan(a) & np.isnan(b))).sum())


def disagreements(name: str, count: int) -> dict[str, int]:
    """Against what -> how many of `count` values differ in a bit."""
    form = FORMATS[name]
    found: dict[str, int] = {}
    if form.kind in ("half", "float8") or form.block:
        values = awkward(count, form)
        edge = np.finfo(np.float32).max if form.kind == "half" else float(ml_dtypes.finfo(dtype_of(form.element)).max)
        inside = values[np.abs(values) <= edge]
        with np.errstate(over="ignore"):
            found["ml_dtypes"] = differing(cast(inside, form.element), inside.astype(dtype_of(form.element)))
    if form.block:
        return found | _of_blocks(form, count)
    size, zero = np.float32(0.0371), np.float32(0 if form.kind == "float8" else (form.least + form.most) // 3)
    for word, step, middle in (("", size, zero), (" symmetric", size, np.float32(0)), (" unit", np.float32(1), zero)):
        values = awkward(count, form, float(step))
        if form.kind == "integer":  # what onnx casts to an integer before it clips
            values = values[np.abs(values / step) < 2.0**30]
        scale = Scale(np.asarray(step), np.asarray(middle))
        mine = fake(values, form, scale)
        found[f"onnx{word}"] = differing(mine, by_onnx(values, form, scale.scale, scale.zero))
        found[f"nodes{word}"] = differing(mine, by_nodes(values, form, scale))
    special = np.array([np.inf, -np.inf, np.nan], np.float32)[: 3 if form.kind != "integer" else 2]
    whole = Scale(np.asarray(size), np.asarray(np.float32(0)))
    found["nodes special"] = differing(fake(special, form, whole), by_nodes(special, form, whole))
    return found


def _of_blocks(form: Format, count: int) -> dict[str, int]:
    values = awkward(count, form, 0.37)
    values = values[(np.abs(values) < 2.0**60) & ((np.abs(values) > 2.0**-60) | (values == 0))]
    values = values[: values.size // (7 * 96) * 7 * 96].reshape(7, 96, -1)
    rows = blocked(values, 1, form.block)
    own = Scale(nv_tensor_scale(float(np.abs(values).max())), np.zeros((), np.float32)) if form.kind == "nv" else None
    scales = mx_scale(rows, form) if own is None else nv_scale(rows, form, own)
    mine = fake(values, form, own, axis=1)
    some = np.where(scales == 0, np.float32(1), scales)
    theirs = np.where(
        scales == 0, np.copysign(np.float32(0), rows), by_onnx(rows, form, some, np.zeros_like(some), form.block)
    )
    if form.element == "float4_e2m1fn" and ONNX_BEFORE_1_23:
        theirs = np.where(theirs == 0, np.copysign(theirs, rows), theirs)
    return {
        "onnx": differing(mine, unblocked(theirs.astype(np.float32), values, 1)),
        "nodes": differing(mine, by_nodes(values, form, own, axis=1)),
        "nodes of known lengths": differing(mine, by_nodes(values, form, own, axis=1, known=True)),
    }
