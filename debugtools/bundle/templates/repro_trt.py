"""Shows the fault that this folder holds, with nothing but numpy, tensorrt and cuda-python: `python repro.py`.

Builds an engine of model.onnx as repro.json says, runs it on inputs.npz and compares with golden.npz. Exit code 1: the
fault shows (outputs beyond tolerance, or no engine can be built or run); 0: it does not show here; 2: this machine
cannot try.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    facts = json.loads((FOLDER / "repro.json").read_text(encoding="utf-8"))
    sys.path.insert(0, str(FOLDER))
    try:
        import compare  # type: ignore[import-not-found]  # beside this script
        import tensorrt
        from cuda.bindings import runtime
    except ImportError as error:
        print(f"cannot try: {error} (pip install tensorrt cuda-python)")
        return 2
    print(f"TensorRT {tensorrt.__version__} here, {facts['versions'].get('tensorrt', '?')} where it was found")
    missing = [flag for flag in facts["tensorrt"]["flags"] if not hasattr(tensorrt.BuilderFlag, flag)]
    if missing:
        print(f"cannot try: this TensorRT has no builder flag {', '.join(missing)}")
        return 2
    return int(
        compare.judge(facts, lambda: _Run(tensorrt, runtime, _engine(tensorrt, facts["tensorrt"]), facts).outputs())
    )


def _engine(trt: Any, wanted: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The engine with the runtime and the logger that it must not outlive."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    typed = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None) if wanted["strongly_typed"] else None
    network = builder.create_network(0 if typed is None else 1 << int(typed))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse((FOLDER / "model.onnx").read_bytes()):
        told = [parser.get_error(i).desc() for i in range(parser.num_errors)]
        raise RuntimeError(f"the parser refuses the model: {'; '.join(told)}")
    for at in range(network.num_layers):
        _type(trt, network.get_layer(at), wanted["layers"])
    plan = builder.build_serialized_network(network, _config(trt, builder, wanted))
    if plan is None:
        raise RuntimeError("no engine can be built")
    runtime = trt.Runtime(logger)
    return runtime.deserialize_cuda_engine(plan), runtime, logger


def _config(trt: Any, builder: Any, wanted: dict[str, Any]) -> Any:
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    for flag in wanted["flags"]:
        config.set_flag(getattr(trt.BuilderFlag, flag))
    if wanted["optimization_level"] is not None:
        config.builder_optimization_level = wanted["optimization_level"]
    for pool, size in wanted["pools"].items():
        config.set_memory_pool_limit(getattr(trt.MemoryPoolType, pool), size)
    return config


def _type(trt: Any, layer: Any, precisions: dict[str, str]) -> None:
    kind = precisions.get(layer.name)
    if kind is not None:
        layer.precision = getattr(trt.DataType, kind)
        for at in range(layer.num_outputs if kind == "FLOAT" else 0):
            if layer.get_output(at).dtype == trt.DataType.FLOAT and layer.get_output(at).is_execution_tensor:
                layer.set_output_type(at, trt.DataType.FLOAT)


class _Run:
    """One run of an engine; every shape is fixed."""

    def __init__(self, trt: Any, cudart: Any, made: tuple[Any, Any, Any], facts: dict[str, Any]) -> None:
        self.cudart, self.facts, self.engine = cudart, facts, made[0]
        self.context = self.engine.create_execution_context()
        self.stream = self._good(cudart.cudaStreamCreate())
        self.inputs = trt.TensorIOMode.INPUT

    def outputs(self) -> dict[str, Any]:
        feed = _load("inputs.npz", self.facts["inputs"])
        golden = _load("golden.npz", self.facts["outputs"]) if self.facts["outputs"] else {}
        found: dict[str, Any] = {}
        places = {}
        for at in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(at)
            array = np.asarray(feed[name], order="C") if name in feed else self._room(name, golden)
            if self.engine.get_tensor_mode(name) != self.inputs:
                found[name] = array
            places[name] = self._good(self.cudart.cudaMalloc(max(array.nbytes, 1)))
            if name in feed:
                self._copy(places[name], array.ctypes.data, array.nbytes, "cudaMemcpyHostToDevice")
            self.context.set_tensor_address(name, int(places[name]))
        if not self.context.execute_async_v3(int(self.stream)):
            raise RuntimeError("the engine does not run")
        for name, array in found.items():
            self._copy(array.ctypes.data, places[name], array.nbytes, "cudaMemcpyDeviceToHost")
        return found

    def _room(self, name: str, golden: dict[str, Any]) -> Any:
        """An array for an output, of the type in which golden.npz has it."""
        shape = tuple(self.context.get_tensor_shape(name))
        kind = golden[name].dtype if name in golden else np.dtype(np.uint64)
        return np.zeros(shape, kind)

    def _copy(self, to: int, source: int, size: int, kind: str) -> None:
        if size:
            way = getattr(self.cudart.cudaMemcpyKind, kind)
            self._good(self.cudart.cudaMemcpyAsync(to, source, size, way, self.stream))
        self._good(self.cudart.cudaStreamSynchronize(self.stream))

    def _good(self, answer: Any) -> Any:
        if int(answer[0]) != 0:
            raise RuntimeError(f"CUDA: {answer[0]}")
        return answer[1] if len(answer) > 1 else None


def _load(file: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    with np.load(FOLDER / file, allow_pickle=False) as archive:
        return {entry["name"]: archive[entry["key"]] for entry in entries}


if __name__ == "__main__":
    sys.exit(main())
