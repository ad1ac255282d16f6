"""An LSTM whose steps are unrolled into single nodes: more than 10,000 of them, in one long chain."""

import numpy as np
from onnx import TensorProto
from support.faults.zoo.build import Builder, Sample


def lstm(small: bool = False, seed: int = 41) -> Sample:
    """x [1, steps, width] to y of the same shape: three layers with layer norms, 25 nodes a cell."""
    steps, layers, width = (5, 2, 16) if small else (140, 3, 64)
    build = Builder("lstm", 17, seed)
    hidden = [build.weight("nothing", np.zeros((1, width)))] * layers
    cell = list(hidden)
    made = []
    for step in range(steps):
        place = build.weight(f"step_{step}", np.int64(step))
        value = build.node("Gather", f"/steps.{step}/Gather", ["x", place], axis=1)
        for layer in range(layers):
            name = f"/steps.{step}/layers.{layer}"
            hidden[layer], cell[layer] = _cell(build, name, layer, width, (value, hidden[layer], cell[layer]))
            value = hidden[layer]
        made.append(build.node("Unsqueeze", f"/steps.{step}/Unsqueeze", [value, build.weight("axis_1", np.array([1]))]))
    build.node("Concat", "/Concat", made, "y", axis=1)
    shape = [1, steps, width]
    feed = np.random.default_rng(seed + 1).standard_normal(shape).astype(np.float32)
    return Sample(build.model({"x": (TensorProto.FLOAT, shape)}, {"y": shape}), {"x": feed})


def _cell(build: Builder, name: str, layer: int, width: int, state: tuple[str, str, str]) -> tuple[str, str]:
    """One step of one layer; returns its hidden state and its cell."""
    value, hidden, cell = state
    from_value = build.linear(f"{name}/input", value, width, 4 * width, shared=f"layers.{layer}.input")
    from_hidden = build.linear(f"{name}/hidden", hidden, width, 4 * width, 0.4, f"layers.{layer}.hidden")
    joint = build.node("Add", f"{name}/Add", [from_value, from_hidden])
    gates = build.split("Split", f"{name}/Split", [joint, build.weight("gates", np.array([width] * 4))], 4, axis=-1)
    lifted = build.node("Add", f"{name}/Add_1", [gates[1], build.weight("one", 1.0)])
    opened, forgot, out = (
        build.node("Sigmoid", f"{name}/Sigmoid_{i}", [gate]) for i, gate in enumerate((gates[0], lifted, gates[3]))
    )
    fresh = build.node("Mul", f"{name}/Mul", [opened, build.node("Tanh", f"{name}/Tanh", [gates[2]])])
    kept = build.node("Mul", f"{name}/Mul_1", [forgot, cell])
    cell = build.node("Add", f"{name}/Add_2", [kept, fresh])
    shown = build.node("Mul", f"{name}/Mul_2", [out, build.node("Tanh", f"{name}/Tanh_1", [cell])])
    return build.layer_norm(f"{name}/norm", shown, width, shared=f"layers.{layer}.norm"), cell
