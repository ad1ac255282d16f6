"""onnxruntime on CUDA against the CPU, through the job layer: `python -m benchmarks.gpu FOLDER [MODEL…]`.

Makes realistic models in FOLDER (heavy networks from the onnx package, a transformer encoder with torch where it is
installed), runs `layerwise run` on each as a user would, and prints one line a run: verdict, seconds, largest error,
canary. Ends with two jobs that want the same GPU, to show that they take turns. Needs an NVIDIA GPU.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
from support.heavy import heavy_model

LAYERWISE = [sys.executable, "-m", "layerwise"]
CUDA, CPU = "onnxrt,providers=cuda", "onnxrt,providers=cpu"
RUNS = {
    "plain": [],
    "plain, TF32 off": ["tf32=false"],
    "every tensor, TF32 off": ["tf32=false", "--mark-all"],
    "as executed, TF32 off": ["tf32=false", "--mark-all", "--observe", "executed"],
}


def encoder(path: Path) -> None:
    """A 12-layer, 768-wide pre-norm transformer encoder with random weights (340 MB), by torch's exporter."""
    import torch

    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval()
    with torch.no_grad():
        torch.onnx.export(model, (torch.randn(1, 128, 768),), str(path), input_names=["x"], dynamo=True,
                          external_data=False, verbose=False)  # fmt: skip


def make_models(folder: Path) -> list[Path]:
    """The models' paths; each is made once."""
    paths = []
    for name in ("densenet121", "resnet50"):
        path = folder / f"heavy_{name}.onnx"
        if not path.exists():
            onnx.save(heavy_model(name), path)
        paths.append(path)
    try:
        path = folder / "encoder.onnx"
        if not path.exists():
            encoder(path)
        paths.append(path)
    except ImportError:
        print("torch is not installed: no encoder")
    return paths


def compare(model: Path, options: list[str]) -> str:
    """One `layerwise run` of CUDA against the CPU, as a line of figures."""
    suspect = ",".join([CUDA, *(option for option in options if "=" in option)])
    flags = [option for option in options if "=" not in option]
    sides = ["--runner", suspect, "--runner", CPU]
    argv = ["run", str(model), *sides, *flags, "--atol", "1e-3", "--rtol", "1e-3", "--json"]
    begun = time.perf_counter()
    done = subprocess.run([*LAYERWISE, *argv], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return f"rc {done.returncode}: {(done.stdout + done.stderr)[-400:]}"
    result = document.get("result") or {}
    worst = max((float(row["max_abs"] or 0) for row in document.get("rows", [])), default=0.0)
    warnings = [event for event in document.get("messages", []) if "provider" in str(event)]
    return (
        f"rc {done.returncode}  {seconds:5.2f} s  {result.get('n_rows')} tensors  {result.get('n_failed')} failed  "
        f"max abs {worst:.3g}  canary {result.get('canary')}  {warnings or ''}"
    )


def take_turns(model: Path) -> str:
    """Submit two jobs that want the GPU and say whether their times on it overlap."""
    argv = ["run", str(model), "--runner", CUDA, "--runner", CPU, "--mark-all", "--detach"]
    for _ in range(2):
        subprocess.run([*LAYERWISE, *argv], check=True, capture_output=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        done = subprocess.run([*LAYERWISE, "jobs", "list", "--json"], capture_output=True, text=True, check=True)
        jobs = sorted(json.loads(done.stdout), key=lambda job: int(job["job"]))[-2:]
        if all(job["state"] in ("done", "failed", "lost", "cancelled") for job in jobs):
            keys = ("job", "state", "started", "ended")
            return "\n".join(json.dumps({key: job.get(key) for key in keys}) for job in jobs)
        time.sleep(0.2)
    return "the jobs did not end within 120 s"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LAYERWISE_HOME", str(folder / "home"))
    models = make_models(folder)
    for model in models:
        for name, options in RUNS.items():
            print(f"{model.stem:18} {name:24} {compare(model, options)}", flush=True)
    print("two jobs, one GPU:", take_turns(models[0]), sep="\n")


if __name__ == "__main__":
    main()
