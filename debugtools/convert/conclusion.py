"""The last sentence of a conversion: what came of it, how sure that is, and what to do next."""

from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.convert.spec import ConvertSpec

_NAMES = {"float16": "FP16", "bfloat16": "bfloat16"}


def conclusion(spec: ConvertSpec, result: Mapping[str, Any], problems: Sequence[object]) -> str:
    """Return the sentence. result: of the job; problems: what is not sound in the result."""
    path = shown(spec.output, 300)
    if problems:
        count = counted(len(problems), "problem")
        return f"{path} is written, but it is not sound: {count}, told above. `check lint` tells more."
    if path.endswith((".npz", ".npy")):
        return f"{path} holds the weights. `convert --load-weights` puts them into a model again."
    made = [*_lowered(spec, result), *_quantised(result)]
    text = "; ".join(made) or counted(result["nodes"], "node")
    model = shown(spec.model, 300)
    sides = f"--onnxrt --reference-model {model}"
    if spec.low == "bfloat16":  # onnxruntime's CPU provider does not take it
        sides = f"--runner reference --runner onnxrt,model={model}"
    return f"{path} is written: {text}. {_cost(result)}: `run {path} {sides} --mark-all` compares the two."


def _cost(result: Mapping[str, Any]) -> str:
    if not result.get("worst"):
        return "Nothing was run"
    error = result["cost"][result["worst"]]
    told = "no longer finite" if error is None else f"off by {error:.2g} (relative L2)"
    on = counted(result["inputs"], "input")
    return f"What it costs: output {shown(result['worst'], 80)} is {told} on {on}"


def _lowered(spec: ConvertSpec, result: Mapping[str, Any]) -> list[str]:
    if spec.low is None:
        return []
    kept = f", {result['kept']} kept in FP32" if result["kept"] else ""
    clipped = f", {counted(len(result['clipped']), 'constant')} cut to its range" if result.get("clipped") else ""
    return [f"{counted(result['low'], 'node')} in {_NAMES.get(spec.low, spec.low)}{kept}{clipped}"]


def _quantised(result: Mapping[str, Any]) -> list[str]:
    return [f"{counted(result['quantised'], 'node')} on quantised tensors"] if "quantised" in result else []
