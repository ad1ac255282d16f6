"""The fake `cuda` has the API of cuda-python's runtime module: names, arguments, enums and numbers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trt.stubs import build

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded" / "cuda_runtime.json").read_text(encoding="utf-8"))
RunIn = Callable[..., str]


def test_the_recording_equals_cuda_python() -> None:
    try:
        folder = build.cuda()
    except build.Unavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [sys.executable, str(HERE / "stubs" / "introspect_cuda.py")],
        env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == RECORDED


def test_every_name_of_the_fake_is_recorded_with_its_arguments(in_fake: RunIn) -> None:
    said = in_fake(
        """
import inspect, json
from cuda.bindings import runtime
public = {n: v for n, v in vars(runtime).items() if n.startswith("cuda")}
print(json.dumps({
    "functions": {n: list(inspect.signature(v).parameters) for n, v in public.items() if inspect.isfunction(v)},
    "enums": {n: {m.name: int(m) for m in v.__members__.values()} for n, v in public.items()
        if hasattr(v, "__members__")},
    "classes": [n for n, v in public.items() if inspect.isclass(v) and not hasattr(v, "__members__")],
}))
"""
    )
    found = json.loads(said)
    recorded = RECORDED["functions"]
    assert found["functions"] == {name: recorded[name] for name in found["functions"]}
    assert {name: set(members) for name, members in found["enums"].items()} == {
        name: set(members) for name, members in RECORDED["enums"].items()
    }
    assert {(n, m, v) for n, ms in found["enums"].items() for m, v in ms.items()} >= {
        ("cudaError_t", "cudaErrorMemoryAllocation", 2), ("cudaMemcpyKind", "cudaMemcpyDeviceToHost", 2),
    }  # fmt: skip


def test_memory_is_counted_freed_once_and_copied(in_fake: RunIn) -> None:
    said = in_fake(
        """
import numpy as np
from cuda.bindings import runtime as cudart
free, whole = cudart.cudaMemGetInfo()[1:]
error, block = cudart.cudaMalloc(64)
x, y = np.arange(16, dtype="f"), np.zeros(16, "f")
kinds = cudart.cudaMemcpyKind
print(error.name, free - cudart.cudaMemGetInfo()[1], block % 256)
print(cudart.cudaMemcpy(block, x.ctypes.data, 64, kinds.cudaMemcpyHostToDevice),
    cudart.cudaMemcpy(y.ctypes.data, block, 64, kinds.cudaMemcpyDeviceToHost), bool((x == y).all()))
print(cudart.cudaFree(block)[0].name, cudart.cudaFree(block)[0].name, cudart.cudaMemGetInfo()[1] == free)
print(cudart.cudaGetErrorString(cudart.cudaError_t.cudaErrorMemoryAllocation))
"""
    )
    assert said.splitlines()[0] == "cudaSuccess 64 0"
    assert said.splitlines()[1].endswith("True")
    assert said.splitlines()[2] == "cudaSuccess cudaErrorInvalidValue True"
    assert said.splitlines()[3].endswith("b'out of memory')")
