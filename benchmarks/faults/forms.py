"""Other forms of a network, under names of their own: optimised, simplified, in fewer bits, or another exporter's."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from support.faults import running
from support.faults.corpus import Clean
from support.faults.running import Array

from benchmarks.verdicts.low import low_model
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import RunnerSpec

Make = Callable[[Path, Path, Mapping[str, Array]], Any]
LOW = frozenset({"fp16", "bf16", "int8", "dynamic"})


@dataclass(frozen=True)
class Form:
    """names: what the tensors are called in this form, by what they were called before.

    runner: what runs it; onnxruntime's CPU kernels do not take bfloat16.
    """

    name: str
    model: onnx.ModelProto
    names: Mapping[str, str]

    @property
    def runner(self) -> Literal["onnxrt", "reference"]:
        return "reference" if self.name == "bf16" else "onnxrt"

    def run(self, feed: Mapping[str, Array], *, everything: bool = False) -> dict[str, Array]:
        """Its outputs; everything: all its tensors instead, unfused."""
        names = [name for node in self.model.graph.node for name in node.output if name]
        model = running.marked(self.model, names) if everything else self.model
        if self.runner == "onnxrt":
            return running.run(model, feed, running.OFF if everything else running.ALL)
        opened = open_runner(RunnerSpec(kind=self.runner), Loadable(data=model.SerializeToString()), name=self.name)
        with closing(opened):
            return {name: _wide(array) for name, array in opened.infer(feed).outputs.items()}

    @property
    def low(self) -> bool:
        return self.name in LOW


def forms(clean: Clean, folder: Path | None, chosen: tuple[str, ...] = ()) -> Iterator[Form]:
    """Each form that can be made here, and FORM of every file NAME.FORM.onnx of a folder."""
    made: dict[str, Make] = {
        "basic": _optimised("ORT_ENABLE_BASIC"), "extended": _optimised("ORT_ENABLE_EXTENDED"), "fused": _fused,
        "slim": _slim, "simplified": _simplified, "fp16": _fp16, "bf16": _bf16, "int8": _static, "dynamic": _dynamic,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source.onnx"
        onnx.save(clean.model, source)
        for name, make in made.items():
            if chosen and name not in chosen:
                continue
            target = Path(place) / f"{name}.onnx"
            try:
                make(source, target, clean.feed)
            except Exception as error:  # whatever a converter says of a model that it does not take
                print(f"{clean.name}: no form {name}: {type(error).__name__}: {str(error)[:200]}")
                continue
            yield Form(name, *renamed(onnx.load(target)))
    for path in sorted(folder.glob(f"{clean.name}.*.onnx")) if folder else ():
        name = path.name.split(".")[-2]
        if not chosen or name in chosen:
            yield Form(name, *renamed(onnx.load(path)))


def renamed(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The model with other names for its inner tensors and weights, none for nodes, and no metadata; bodies as well."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = {value.name for value in (*copy.graph.input, *copy.graph.output)}
    new: dict[str, str] = {}
    order = np.random.default_rng(7).permutation(1 << 16)

    def name_of(name: str) -> str:
        return name if not name or name in kept else new.setdefault(name, f"r{order[len(new)]}")

    def rename(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            node.input[:], node.output[:] = map(name_of, node.input), map(name_of, node.output)
            node.name = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
                    rename(body)
        for value in (*graph.initializer, *graph.input, *graph.output):
            value.name = name_of(value.name)
        del graph.value_info[:]

    rename(copy.graph)
    return copy, new


def _wide(array: Array) -> Array:
    """In a type that numpy's own functions take."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


def _optimised(level: str) -> Make:
    def make(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 4
        options.optimized_model_filepath = str(target)
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return make


def _fused(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    from onnxruntime.transformers import optimizer

    optimizer.optimize_model(str(source), model_type="bert", opt_level=0).save_model_to_file(str(target))
    domains = {node.domain for node in onnx.load(target).graph.node}
    if not domains & {"com.microsoft"}:
        raise ValueError("nothing to fuse")


def _slim(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    if find_spec("onnxslim") is None:
        raise ValueError("onnxslim is not installed")
    import onnxslim

    onnxslim.slim(str(source), str(target))


def _simplified(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    if find_spec("onnxsim") is None:
        raise ValueError("onnxsim is not installed")
    import onnxsim

    model, right = onnxsim.simplify(str(source))
    if not right:
        raise ValueError("onnxsim finds its own result wrong")
    onnx.save(model, target)


def _bf16(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    onnx.save(low_model(onnx.load(source), "bfloat16"), target)


def _fp16(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def _static(source: Path, target: Path, feed: Mapping[str, Array]) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [dict(feed)]

        def get_next(self) -> dict[str, Array] | None:
            return self.left.pop() if self.left else None

    quantize_static(str(source), str(target), Reader(), quant_format=QuantFormat.QDQ)


def _dynamic(source: Path, target: Path, _feed: Mapping[str, Array]) -> None:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(str(source), str(target))
