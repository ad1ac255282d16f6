"""Large models on the GPU: `python -m benchmarks.gpu_large FOLDER [billion|eight]`.

Two CUDA runners of a Llama-shaped model, TF32 off on one side, and, as a fault, a projection's output scaled by 1.01:
a plain comparison, mark-all, locate, reduce, a bundle; seconds, and the largest process on the host. Needs a GPU
and disk space for the model (3.9 GB; 16 GB for `eight`).
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.large_model import BILLION, EIGHT_BILLION, llama

LAYERWISE = [sys.executable, "-m", "layerwise"]
CUDA = "onnxrt,providers=cuda,tf32=false"


def planted(good: Path, bad: Path, layer: int) -> str:
    """The model with one projection's output scaled by 1.01, its weights those of the good file; the node."""
    model = onnx.load(good, load_external_data=False)
    name = f"layers.{layer}.upped"
    place = next(i for i, node in enumerate(model.graph.node) if node.name == name)
    made = model.graph.node[place]
    kind = next(t.data_type for t in model.graph.initializer if t.name == made.input[1])
    made.output[0] = f"{name}.before"
    factor = numpy_helper.from_array(np.array(1.01, helper.tensor_dtype_to_np_dtype(kind)), "planted.factor")
    model.graph.initializer.append(factor)
    model.graph.node.insert(place + 1, helper.make_node("Mul", [f"{name}.before", "planted.factor"], [name], "planted"))
    onnx.save(model, bad)
    return name


def run(title: str, *words: str | Path) -> dict[str, Any]:
    """Run a command and print its seconds, its peak of host memory and what it concluded."""
    begun = time.perf_counter()
    done = subprocess.run([*LAYERWISE, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"{title}: {seconds:.2f} s, rc {done.returncode}, largest process so far {peak:.1f} GB", flush=True)
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        print(f"    {(done.stdout + done.stderr)[-800:]}")
        return {}
    result = document.get("result") or document
    for key in ("n_rows", "n_failed", "peak_memory", "conclusion", "summary", "verified"):
        if result.get(key) is not None:
            print(f"    {key}: {str(result[key])[:300]}")
    for suspect in (document.get("suspects") or result.get("suspects") or [])[:3]:
        print(f"    #{suspect['i']} {suspect['op']} {suspect['node']}: {suspect['diagnosis']}")
    if document.get("error"):
        print(f"    {document['error'].get('summary')}")
    return document


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LAYERWISE_HOME", str(folder / "home"))
    shape = EIGHT_BILLION if sys.argv[2:3] == ["eight"] else BILLION
    good, bad = folder / "good.onnx", folder / "bad.onnx"
    begun = time.perf_counter()
    if not good.exists():
        llama(good, shape)
    node = planted(good, bad, shape.layers // 2)
    size = (folder / "good.onnx.data").stat().st_size
    print(
        f"model: {size / 1e9:.2f} GB, written in {time.perf_counter() - begun:.1f} s; planted behind {node}", flush=True
    )
    alike = [good, "--runner", CUDA, "--runner", "onnxrt,providers=cuda"]
    faulty = [bad, "--runner", CUDA, "--reference-model", good]
    for _ in range(2):
        run("plain, TF32 off against on", "run", *alike)
        run("plain, fault", "run", *faulty)
    run("mark-all, TF32 off against on", "run", *alike, "--mark-all")
    run("mark-all, fault", "run", *faulty, "--mark-all")
    run("locate, fault", "debug", "locate", *faulty)
    run("reduce, fault", "debug", "reduce", *faulty, "-o", folder / "reduced.onnx")
    run("bundle of what reduce found", "debug", "bundle", "-o", folder / "bundle")


if __name__ == "__main__":
    main()
