"""The same model in onnxruntime and TensorRT: outputs compared, and all of them saved."""

from layerwise.backend.onnxrt import OnnxrtRunner, SessionFromOnnx
from layerwise.backend.trt import EngineFromNetwork, NetworkFromOnnxPath, TrtRunner
from layerwise.comparator import Comparator, CompareFunc

runners = [
    TrtRunner(EngineFromNetwork(NetworkFromOnnxPath("mlp.onnx")), name="trt"),
    OnnxrtRunner(SessionFromOnnx("mlp.onnx"), name="onnxrt"),
]
run_results = Comparator.run(runners)
accuracy = Comparator.compare_accuracy(run_results, compare_func=CompareFunc.simple(atol=1e-5))
assert bool(accuracy)
run_results.save("results.json")
print(list(run_results.keys()), [result.percentage() for result in accuracy])
