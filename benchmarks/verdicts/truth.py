"""Three sides: how many times what rounding explains is a layer off, in clean conversions and with errors of 10 ulp?

Of networks that FP16 can hold. Clean: optimised against not, and converted to FP16, each with --truth; no layer may be
above 4 times. Faults, in FP32 and in the FP16 conversion: an output times 1 + 10 ulp, all weights of a product and its
bias times that, each of them up or down by 10 ulp; the layer must be the first above 4 times. Layers whose values are
too small for 10 units to make another number of their type are not drawn. Then what it costs: the peak memory of three
runs of one command.
"""

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec.structs import replace as with_fields
from onnx import TensorProto, helper, numpy_helper
from support.faults import running
from support.faults.scaled import UNIT, element_types, scaled
from support.faults.zoo.build import Sample

from benchmarks.measure import OURS, measure
from benchmarks.verdicts.low import low_model, overflows
from benchmarks.verdicts.pairs import HALF, OFF, ON, Files, Options, compared, samples, written
from benchmarks.verdicts.ulps import shows
from layerwise._tool.backends.specs import RunnerSpec

LIMIT, ULPS = 4.0, 10
PRODUCTS = ("MatMul", "Gemm", "Conv")
_BESIDE = 3.0  # times the memory of a plain run


def main(options: Options) -> bool:
    """Measure and print; whether every clean pair is acceptable and every fault the first above 4 times."""
    clean: list[float] = []
    faults: dict[str, list[bool]] = {}
    memory: list[float] = []
    for name, sample in samples(options):
        if name.endswith((HALF, "FP16")) or overflows(sample):
            continue
        with written(sample) as files:
            half = files.model.with_name("half.onnx")
            onnx.save(low_model(sample.model, "float16"), half)
            clean += [_worst(name, files, sides) for sides in ([ON, OFF], [with_fields(ON, model=str(half)), ON])]
            for kind, tensor, model in _planted(sample, onnx.load(half), random.Random(options.seed)):
                if options.asked(kind):
                    faults.setdefault(kind, []).append(_first(name, kind, files, model, tensor))
            memory.append(_memory(name, files))
    above = sum(times > LIMIT for times in clean)
    print(f"clean: {len(clean)} comparisons, at most {max(clean):.2g} times, above {LIMIT}: {above}")
    for kind, hits in faults.items():
        print(f"{kind}: first above {LIMIT} in {sum(hits)} of {len(hits)}")
    print(f"memory: at most {max(memory):.2f} times that of a plain run")
    good = all(sum(hits) >= 0.95 * len(hits) for hits in faults.values())
    return max(clean) <= LIMIT and good and max(memory) <= _BESIDE


def _worst(name: str, files: Files, sides: list[RunnerSpec]) -> float:
    result = compared(files, sides, truth=True).result["truth"]
    if not result["acceptable"]:
        print(f"CLEAN {name}: {result['text']}", flush=True)
    return float(result["worst"] or 0.0)


def _first(name: str, kind: str, files: Files, model: onnx.ModelProto, tensor: str) -> bool:
    suspect = files.model.with_name("suspect.onnx")
    onnx.save(model, suspect)
    sides = [with_fields(ON, model=str(suspect)), ON]
    result = compared(replace(files, model=files.model), sides, truth=True).result["truth"]
    hit = bool(result["first"]) and result["first"]["tensor"] == tensor
    if not hit:
        print(f"MISSED {name}, {kind}, {tensor}: {result['text']}", flush=True)
    return hit


def _planted(sample: Sample, half: onnx.ModelProto, drawn: random.Random) -> Iterator[tuple[str, str, onnx.ModelProto]]:
    """Kinds of faults, the layer, and the model with it."""
    values = running.all_tensors(sample.model, sample.feed)
    for words, model, kind in (("FP32", sample.model, TensorProto.FLOAT), ("FP16", half, TensorProto.FLOAT16)):
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        products = [
            (node.output[0], weights)
            for node, weights in _products(model, kind)
            if node.output[0] in values and shows(values[node.output[0]], dtype)
        ]
        if not products:
            print(f"left out: no product of {words} whose weights it alone reads and that shows 10 units", flush=True)
            continue
        tensor, weights = drawn.choice(products)
        part = ULPS * UNIT[kind]
        yield f"{words} output", tensor, scaled(model, tensor, 1 + part, kind)
        yield f"{words} all weights", tensor, _weighed(model, weights, lambda a, p=part: a * (1 + p))
        yield f"{words} each weight", tensor, _weighed(model, weights, lambda a, p=part: a * (1 + p * _signs(a)))


def _signs(array: Any) -> Any:
    return 2 * np.random.default_rng(0).integers(0, 2, array.shape) - 1


def _products(model: onnx.ModelProto, kind: int) -> Iterator[tuple[onnx.NodeProto, list[str]]]:
    """Products of one type with weights that only they read: of a tensor and a weight, and the bias."""
    weights = {tensor.name for tensor in model.graph.initializer if tensor.data_type == kind and tensor.dims}
    readers = [name for node in model.graph.node for name in node.input]
    types = element_types(model)
    for node in model.graph.node:
        own = [name for name in node.input if name in weights and readers.count(name) == 1]
        whole = any(name in own for name in node.input[:2]) and all(name in own for name in node.input[2:] if name)
        if node.op_type in PRODUCTS and whole and types.get(node.output[0], kind) == kind:
            yield node, own


def _weighed(model: onnx.ModelProto, names: Collection[str], change: Callable[[Any], Any]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for weight in copy.graph.initializer:
        if weight.name in names:
            array = numpy_helper.to_array(weight)
            changed = change(array.astype(np.float64)).astype(array.dtype)
            weight.CopyFrom(numpy_helper.from_array(changed, weight.name))
    return copy


def _memory(name: str, files: Files) -> float:
    """The peak of a run with the truth, over that of a plain run."""
    line = [*OURS, "run", str(files.model), "--onnxrt", "--onnxrt", "--load-inputs", str(files.inputs)]
    folder: Path = files.model.parent
    plain, truth = measure(line, folder), measure([*line, "--truth"], folder)
    print(f"{name:16} plain run {plain.peak:.0f} MB, with the truth {truth.peak:.0f} MB", flush=True)
    return truth.peak / plain.peak
