"""Finding culprits with the suspect on CUDA and the reference on the CPU: `python -m benchmarks.gpu_debug FOLDER`.

Each line is a command as a user would type it, its seconds, and what it found: a convolution whose weights are 1 % too
large, what TF32 does, an FP16 transformer that overflows on the device. Needs an NVIDIA GPU.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper
from support.heavy import heavy_model

from layerwise._tool.surgery.demo import make_demo
from layerwise._tool.surgery.precision.nodes import convert_precision

LAYERWISE = [sys.executable, "-m", "layerwise"]
EXACT = ["--runner", "onnxrt,providers=cuda,tf32=false", "--runner", "onnxrt,providers=cpu"]
TF32 = ["--runner", "onnxrt,providers=cuda", "--runner", "onnxrt,providers=cpu"]


def planted(path: Path, name: str) -> tuple[Path, str]:
    """A heavy network with the weights of its middle Conv scaled by 1.01; its path and the Conv's label."""
    model = heavy_model(name)
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    node = convolutions[len(convolutions) // 2]
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[1])
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * 1.01, weight.name))
    onnx.save(model, path)
    return path, node.name or node.output[0]


def run(*words: str | Path) -> tuple[float, dict[str, Any]]:
    """Seconds and the JSON document of one command."""
    begun = time.perf_counter()
    done = subprocess.run([*LAYERWISE, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    try:
        return seconds, json.loads(done.stdout)
    except ValueError:
        return seconds, {"error": {"summary": f"rc {done.returncode}: {(done.stdout + done.stderr)[-600:]}"}}


def tell(title: str, seconds: float, document: dict[str, Any]) -> None:
    """Print what came of a command."""
    print(f"{title}: {seconds:.2f} s", flush=True)
    for suspect in (document.get("suspects") or [])[:4]:
        numbers = f"local {suspect['local']} accumulated {suspect['accumulated']}"
        print(f"    #{suspect['i']} {suspect['op']} {suspect['node']}: {suspect['diagnosis']}, {numbers}")
    result = document.get("result") or document
    for key in ("summary", "checks", "verified"):
        if key in result:
            print(f"    {key}: {result[key]}")
    if document.get("error"):
        print(f"    {document['error'].get('summary')}")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LAYERWISE_HOME", str(folder / "home"))
    for name in ("resnet50", "densenet121"):
        good = folder / f"heavy_{name}.onnx"
        if not good.exists():
            onnx.save(heavy_model(name), good)
        bad, label = planted(folder / f"bad_{name}.onnx", name)
        print(f"{name}: planted at {label}")
        sides = [bad, *EXACT, "--reference-model", good]
        tell("  locate", *run("debug", "locate", *sides))
        tell("  reduce", *run("debug", "reduce", *sides, "-o", folder / f"reduced_{name}.onnx"))
        tell("  TF32, locate", *run("debug", "locate", good, *TF32))
    demo = make_demo(folder / "demo")
    half = folder / "half.onnx"
    onnx.save(convert_precision(onnx.load(demo.fp32), "float16"), half)
    data = ["--load-inputs", demo.inputs]
    tell("FP16 transformer, locate", *run("debug", "locate", half, *EXACT, "--reference-model", demo.fp32, *data))
    rules = ["--atol", "1e-2", "--rtol", "1e-2"]
    tell("FP16 transformer, precision", *run("debug", "precision", demo.fp32, *EXACT, *data, *rules))


if __name__ == "__main__":
    main()
