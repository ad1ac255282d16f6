"""What the lens predicts beside real execution in low precision: `python -m benchmarks.gpu_lens [--cpu]`, with torch.

A network of products and Gelu, and one with attention, both made here. For each format: the error that the squares of
single effects predict, the error of all nodes on the switchboard, and the error where the arithmetic is really low:

fp16, bf16   the converted model on onnxruntime's CUDA provider, whose kernels compute in that type
int8         every product by torch._int_mm: integers times integers, summed in int32
fp8e4m3      every product by torch._scaled_mm: FP8 times FP8, on a GPU that has it

With --cpu the first runs on the CPU provider (which computes FP16 in FP32: said as simulated), the last is left out.
"""

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import ModelOptions, RunnerSpec
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.search.lens.effects import Effects
from layerwise._tool.debugtools.search.lens.lens import Lens
from layerwise._tool.debugtools.search.lens.predict import predicted, worst
from layerwise._tool.debugtools.search.lens.spec import Rounding
from layerwise._tool.debugtools.search.lens.writing import mixed_model
from layerwise._tool.surgery.quantise.candidates import Candidate

Array = NDArray[Any]
_ROWS, _WIDTH, _LAYERS = 256, 512, 8


def network(attention: bool) -> onnx.ModelProto:
    """x -> layers of MatMul, Gelu by Erf, MatMul, sum and LayerNormalization; with attention between -> y."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, Array] = {"half": np.float32(0.5), "one": np.float32(1), "root": np.float32(math.sqrt(0.5)),
                                 "scale": np.float32(1 / math.sqrt(_WIDTH)),
                                 "g": np.ones(_WIDTH, np.float32)}  # fmt: skip

    def op(kind: str, *inputs: str, **more: Any) -> str:
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], f"n{len(nodes)}_{kind}", **more))
        return name

    def linear(name: str, n: int, k: int) -> str:
        weight = f"w{len(weights)}"
        weights[weight] = (rng.standard_normal((n, k)) / math.sqrt(n)).astype(np.float32)
        return op("MatMul", name, weight)

    x = "x"
    for _ in range(_LAYERS):
        if attention:
            q, k, v = (linear(x, _WIDTH, _WIDTH) for _ in range(3))
            scores = op("Softmax", op("Mul", op("MatMul", q, op("Transpose", k, perm=[1, 0])), "scale"), axis=-1)
            x = op("LayerNormalization", op("Add", x, op("MatMul", scores, v)), "g", axis=-1)
        h = linear(x, _WIDTH, 4 * _WIDTH)
        gelu = op("Mul", op("Mul", h, "half"), op("Add", op("Erf", op("Mul", h, "root")), "one"))
        x = op("LayerNormalization", op("Add", x, linear(gelu, 4 * _WIDTH, _WIDTH)), "g", axis=-1)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [_ROWS, _WIDTH]) for name in ("x", x)]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], initializers)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def by_runner(lens: Lens, provider: str) -> str:
    """The converted model's error on a provider."""
    spec = RunnerSpec(kind="onnxrt", providers=[provider], tf32=False if provider == "cuda" else None)
    model = mixed_model(lens, [one.i for one in lens.candidates]).proto()
    try:
        with open_runner(spec, Loadable(data=model.SerializeToString(), folder=lens.model.file.folder)) as runner:
            return f"{lens.errors_of(dict(runner.infer(feed).outputs) for feed in lens.feeds).worst:.3e}"
    except LayerwiseError as error:
        return f"not run: {str(error)[:90]}"


class InTorch:
    """The network in torch, its products on low operands. device: cpu or cuda."""

    def __init__(self, lens: Lens, device: str) -> None:
        self._lens, self._device = lens, device
        self._low = {one.made: one for one in lens.candidates}

    def error(self) -> float:
        return self._lens.errors_of(self._run(feed) for feed in self._lens.feeds).worst

    def _run(self, feed: Any) -> dict[str, Array]:
        cut = self._lens.model.cut
        known = {name: self._on(array) for name, array in feed.items()}
        known |= {name: self._on(self._lens.model.file.array(name)) for name in cut.initializers}
        for node in cut.nodes:
            given = [known[name] for name in node.input]
            one = self._low.get(node.output[0])
            known[node.output[0]] = self._node(node, given) if one is None else self._product(one, *given)
        return {name: known[name].cpu().numpy() for name in cut.outputs}

    def _on(self, array: Array) -> torch.Tensor:
        return torch.from_numpy(np.array(array, np.float32)).to(self._device)

    def _node(self, node: onnx.NodeProto, given: list[torch.Tensor]) -> torch.Tensor:
        kinds = {"Add": torch.add, "Mul": torch.mul, "Erf": torch.erf, "Transpose": torch.t}
        if node.op_type == "Softmax":
            return torch.softmax(given[0], -1)
        if node.op_type == "LayerNormalization":
            return torch.nn.functional.layer_norm(given[0], (_WIDTH,), given[1])
        return kinds[node.op_type](*given)

    def _product(self, one: Candidate, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        lens = self._lens
        scale_a = self._on(lens.scales[one.i, 0].scale)
        weight = next((each for each in one.weights), None)
        found = None if weight is None else lens.weight_scale(weight, lens.array(weight.name))
        scale_b = self._on(lens.scales[one.i, 1].scale if found is None else found.scale)
        if lens.form.name == "int8":
            low_a, low_b = (
                torch.clamp(torch.round(x / s), -128, 127).to(torch.int8) for x, s in ((a, scale_a), (b, scale_b))
            )
            return torch._int_mm(low_a, low_b.contiguous()).float() * scale_a * scale_b
        kind = torch.float8_e4m3fn
        low_a, low_b = (torch.clamp(x / s, -448, 448).to(kind) for x, s in ((a, scale_a), (b, scale_b)))
        unit = torch.ones((), device=self._device)
        made = torch._scaled_mm(
            low_a, low_b.t().contiguous().t(), unit, unit, out_dtype=torch.float32, use_fast_accum=False
        )
        return made * scale_a * scale_b


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_lens")
    parser.add_argument("--cpu", action="store_true")
    device = "cpu" if parser.parse_args().cpu else "cuda"
    rng = np.random.default_rng(1)
    feed = {"x": rng.standard_normal((_ROWS, _WIDTH)).astype(np.float32)}
    for attention in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(network(attention), path)
            for to in ("fp16", "bf16", "int8", "fp8e4m3"):
                runner = RunnerSpec(kind="onnxrt", providers=[device], tf32=False if device == "cuda" else None)
                ops = () if to in ("fp16", "bf16") else ("MatMul",)
                lens = Lens(Model(str(path), ModelOptions()), runner, Rounding(to=to), [feed], ops=ops)  # type: ignore[arg-type]
                lens.begin()
                every = [one.i for one in lens.candidates]
                effects = Effects(lens, split=False)
                squares = worst(predicted({one.i: effects.row(one) for one in lens.candidates}, every))
                if to in ("fp16", "bf16"):
                    kind = "real" if device == "cuda" else "simulated"
                    told = f"{kind}, onnxruntime {device}: {by_runner(lens, device)}"
                elif to == "fp8e4m3" and device == "cpu":
                    told = "no kernel here"
                else:
                    told = f"real, torch {device}: {InTorch(lens, device).error():.3e}"
                what = "attention" if attention else "products"
                board = lens.measured(every).worst
                print(f"{what:10} {to:8} {len(every):3} nodes: squares {squares:.3e}, switchboard {board:.3e}, {told}")
                lens.close()


if __name__ == "__main__":
    main()
