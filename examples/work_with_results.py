"""Inputs and results as files: saved, loaded, looked at and changed. No TensorRT is needed."""

import numpy as np

from layerwise.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from layerwise.comparator import Comparator, CompareFunc, RunResults
from layerwise.json import load_json, save_json

save_json([{"x": np.arange(16, dtype=np.float32).reshape(1, 16) * step} for step in (1, 2)], "inputs.json")
inputs = load_json("inputs.json")
print(len(inputs), {name: (str(array.dtype), array.shape) for name, array in inputs[0].items()})

build = SessionFromOnnx("mlp.onnx")
Comparator.run([OnnxrtRunner(build, name="cpu")], data_loader=inputs).save("outputs.json")

results = RunResults.load("outputs.json")
for runner, iterations in results.items():
    for iteration in iterations:
        for name, output in iteration.items():
            print(runner, name, output.shape, bool(np.isfinite(output).all()))
            iteration[name] = output + 0.5
results.save("changed.json")

changed = RunResults.load("changed.json")
both = RunResults([("before", RunResults.load("outputs.json")["cpu"]), ("after", changed["cpu"])])
print(bool(Comparator.compare_accuracy(both, compare_func=CompareFunc.simple(atol=1e-3))))
