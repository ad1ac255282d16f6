"""Large models on the GPU: `python -m benchmarks.gpu_large FOLDER [billion|eight]`.

Two CUDA runners of a Llama-shaped model, TF32 off on one side, and, as a fault, a projection's output scaled by 1.01:
a plain comparison, mark-all, locate, reduce, a bundle and its script; seconds, how many times the median plain
comparison that is, and the largest process on the host beside the size of the file. Needs a GPU and disk space for the
model (3.9 GB; 16 GB for `eight`). Exit code 1 if one of them finds something else than the fault, a process takes
1.2 times the file, or, of the billion, mark-all more than twice, locate or reduce more than three times the plain run.
"""

import json
import os
import resource
import statistics
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


class Measured:
    """Commands with their seconds; `wrong` holds what is not as it must be."""

    def __init__(self, size: int, *, timed: bool) -> None:
        self.size, self.timed, self.plain, self.wrong = size, timed, list[float](), list[str]()

    def run(self, title: str, *words: str | Path, most: float = 0.0) -> str:
        """Run a command; print its seconds, its peak of host memory, what it concluded. most: times the plain one."""
        begun = time.perf_counter()
        done = subprocess.run([*LAYERWISE, *map(str, words), "--json"], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begun
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        if not most:
            self.plain.append(seconds)
        times = seconds / statistics.median(self.plain)
        told = f"{title}: {seconds:.2f} s, {times:.1f} times plain, rc {done.returncode}"
        print(f"{told}, largest process so far {peak / 1e9:.1f} GB, {peak / self.size:.2f} of the file", flush=True)
        self.check(not most or times <= most or not self.timed, f"{title} took {times:.1f} times the plain comparison")
        self.check(peak < 1.2 * self.size, f"{title}: a process took {peak / self.size:.2f} times the file")
        return self._told(done.stdout, done.stderr)

    def check(self, good: bool, wrong: str) -> None:
        if not good:
            self.wrong.append(wrong)

    def _told(self, out: str, said: str) -> str:
        try:
            document: dict[str, Any] = json.loads(out)
        except ValueError:
            print(f"    {(out + said)[-800:]}")
            return ""
        result = document.get("result") or document
        for key in ("n_rows", "n_failed", "peak_memory", "conclusion", "summary", "verified", "checks"):
            if result.get(key) is not None:
                print(f"    {key}: {str(result[key])[:300]}")
        for suspect in (document.get("suspects") or result.get("suspects") or [])[:3]:
            print(f"    #{suspect['i']} {suspect['op']} {suspect['node']}: {suspect['diagnosis']}")
        if error := document.get("error"):
            print(f"    {error.get('summary') if isinstance(error, dict) else error}")
        return out


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
    measured = Measured(size, timed=shape is BILLION)
    for _ in range(3):
        measured.run("plain, TF32 off against on", "run", *alike)
        measured.run("plain, fault", "run", *faulty)
    measured.run("mark-all, TF32 off against on", "run", *alike, "--mark-all", most=2.0)
    for title, words, most in (
        ("mark-all", ("run", *faulty, "--mark-all"), 2.0),
        ("locate", ("debug", "locate", *faulty), 3.0),
        ("reduce", ("debug", "reduce", *faulty, "-o", folder / "reduced.onnx"), 3.0),
    ):
        told = measured.run(f"{title}, fault", *words, most=most)
        measured.check("planted" in told, f"{title} does not name the fault")
    measured.run("bundle of what reduce found", "debug", "bundle", "-o", folder / "bundle", most=9.0)
    script = [sys.executable, str(folder / "bundle" / "repro.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    print(f"the bundle's script: rc {done.returncode}\n    {(done.stdout + done.stderr)[-600:]}", flush=True)
    measured.check(done.returncode == 1 and "Traceback" not in done.stderr, "the bundle's script does not show it")
    print("\n".join(measured.wrong) or "all as it must be")
    sys.exit(1 if measured.wrong else 0)


if __name__ == "__main__":
    main()
